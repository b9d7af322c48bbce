import type { Difference } from '../index.ts';
import { FAILED } from './failure.ts';
import { out, say } from './output.ts';
import { visible } from './text.ts';

/** Git reads no larger patch (its MAX_APPLY_SIZE). */
const GIT_BYTES = 1023 * 1024 * 1024;

/** Writes what `git apply` takes to standard output, and says on standard error what it leaves out; what cannot be read is a fault. */
export function writePatch(differences: Iterable<Difference>): void {
  let length = 0;
  for (const difference of differences) {
    for (const bytes of difference.patch()) {
      out.write(bytes);
      length += bytes.length;
    }
    for (const { kind, words } of difference.omitted) {
      say(`palimpsest: not in the patch: ${visible(words)}`);
      if (kind === 'unreadable') process.exitCode = FAILED;
    }
  }
  if (length > GIT_BYTES) say('palimpsest: git apply takes patches of up to 1023 MiB, and this one is larger');
}
