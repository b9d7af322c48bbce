import type { Difference } from './difference.ts';
import type { Omission } from './omission.ts';

/** The names that a prediction goes by. */
export interface PredictionNames {
  readonly instance: string;
  readonly model: string;
}

/**
 * A line of the predictions that SWE-bench's harness reads: `instance_id`, `model_name_or_path`, and the patch as `model_patch`. JSON is text: the
 * differences have to be made with `utf8`, so that other contents are in git's base 85.
 */
export function* prediction({ instance, model }: PredictionNames, differences: Iterable<Difference>, omit: (omission: Omission) => void): Generator<Uint8Array> {
  yield Buffer.from(`{"instance_id":${JSON.stringify(instance)},"model_name_or_path":${JSON.stringify(model)},"model_patch":"`);
  for (const difference of differences) {
    difference.omitted.forEach(omit);
    for (const piece of difference.patch()) yield Buffer.from(JSON.stringify(Buffer.from(piece).toString()).slice(1, -1));
  }
  yield Buffer.from('"}\n');
}
