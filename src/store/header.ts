import { CorruptEventError, decodeHeader } from '../core/encode.ts';
import { FORMAT_VERSION, type Header } from '../core/format.ts';
import type { Readable } from './bytes.ts';
import { CorruptLogError, SessionError } from './fault.ts';
import type { DamageReason } from './fault.ts';
import { LineReader, checkLine } from './line.ts';

/**
 * Line 1 of a log and the place after it. Throws `SessionError` where the log is of another format or none at all,
 * `CorruptLogError` where its header is damaged.
 */
export function readHeader(source: Readable, directory: string, file: string): { header: Header; end: number } {
  const damaged = (reason: DamageReason, detail: string) =>
    new CorruptLogError({ file, line: 1, reason, detail, goodSeq: undefined, goodBytes: 0 });
  const reader = new LineReader(source, 0, Math.min(source.size, HEADER_LIMIT_BYTES));
  if (!reader.next()) throw damaged('bad header', 'it does not end');
  const { bytes, start, end } = reader;
  const state = checkLine(bytes, start, end);
  const header = parse(bytes.toString('utf8', start, end));
  if (header === undefined) throw damaged(state === 'bad crc' ? state : 'not JSON', 'the header');
  const format = header['palimpsest'];
  if (typeof format === 'number' && format > FORMAT_VERSION) {
    const doubt = state === 'bad crc' ? ', unless its line 1 is damaged: the crc is wrong' : '';
    throw new SessionError('ERR_SESSION_FORMAT', directory,
      `${file} is of format ${format}, newer than ${FORMAT_VERSION}, the newest known here${doubt}`);
  }
  if (state === 'bad crc' || (state === 'no crc' && format === FORMAT_VERSION)) throw damaged(state, 'the header');
  if (format !== FORMAT_VERSION) {
    throw new SessionError('ERR_NOT_A_SESSION', directory, `${file} does not begin with {"palimpsest":${FORMAT_VERSION},…}`);
  }
  try {
    return { header: decodeHeader(bytes.toString('utf8', start, end)), end: end + 1 };
  } catch (error) {
    if (!(error instanceof CorruptEventError)) throw error;
    throw damaged('bad header', error.reason);
  }
}

/** A header has a handful of short members. */
const HEADER_LIMIT_BYTES = 1024 * 1024;

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown> : undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}
