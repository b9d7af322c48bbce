import { closeSync, constants, fstatSync, openSync, renameSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Readable } from './bytes.ts';
import { hasCode, readFully, writeNew } from './file.ts';
import { checkLine, crcOf, seqOf } from './line.ts';
import type { LogPlace } from './log.ts';
import { OffsetIndex } from './offset.ts';
import type { Header } from '../core/format.ts';

/**
 * The checkpoint: the state after some event, so that opening need not read the events before it.
 *
 *     line 1   {"checkpoint":1,"session":…,"seq":…,"end":…,"line":…,"bytes":…,"data":…,"seqs":[…],"offsets":[…]}
 *              then crc32 of that object's bytes in 8 hex digits, and a newline
 *     the rest the data, UTF-8
 *
 * `end` is the place in the log after event `seq`, `line` the crc in that event's line, `data` the crc32 of the
 * data, `bytes` its length. It belongs to a log when session, seq and that line are there just so. What else the log
 * holds before is not looked at: that is what verifying is for. A checkpoint that does not belong or is damaged is as
 * none; it is only a cache.
 */
export interface Checkpoint extends LogPlace {
  readonly session: string;
  /** crc of the line of event `seq`, as the log has it. */
  readonly line: string;
}

interface Head {
  readonly checkpoint: 1;
  readonly session: string;
  readonly seq: number;
  readonly end: number;
  readonly line: string;
  readonly bytes: number;
  readonly data: number;
  readonly seqs: number[];
  readonly offsets: number[];
}

/** The head of a checkpoint may be this long: 64 bytes an entry of the offset index, for logs of some 100 GiB. */
const HEAD_LIMIT_BYTES = 256 * 1024 ** 2;
const FIRST_BYTES = 256 * 1024;
/** Most lines are shorter. */
const LINE_BYTES = 4096;

/** Replaces the checkpoint in the file `path` atomically. Not made durable: after a power cut it may be none. */
export function writeCheckpoint(path: string, checkpoint: Checkpoint, data: string): void {
  const body = Buffer.from(data);
  const { session, seq, end, line, offsets } = checkpoint;
  const head: Head = {
    checkpoint: 1, session, seq, end, line, bytes: body.length, data: crc32(body), ...offsets.upTo(seq),
  };
  const json = Buffer.from(JSON.stringify(head));
  const sum = Buffer.from(crc32(json).toString(16).padStart(8, '0') + '\n');
  writeNew(path + '.part', Buffer.concat([json, sum, body]), { through: false });
  renameSync(path + '.part', path);
}

/** The head of the checkpoint in the file `path`; `undefined` where there is none that is whole. */
export function readCheckpoint(path: string): Checkpoint | undefined {
  const head = withFile(path, undefined, (fd, size) => readHead(fd, size)?.head);
  if (head === undefined) return undefined;
  const { session, seq, end, line, seqs, offsets } = head;
  return { session, seq, end, line, offsets: new OffsetIndex(seqs, offsets) };
}

/** Whether a checkpoint belongs to the log in `source`: the same session, and its event just where it says. */
export function belongs(checkpoint: Checkpoint, header: Header, source: Readable): boolean {
  const { session, seq, end, line } = checkpoint;
  if (session !== header.session || end > source.size) return false;
  for (let length = LINE_BYTES; ; length *= 4) {
    const from = Math.max(0, end - length), bytes = Buffer.allocUnsafe(end - from);
    if (source.read(bytes, 0, bytes.length, from) !== bytes.length || bytes[bytes.length - 1] !== 10) return false;
    const before = bytes.length < 2 ? -1 : bytes.lastIndexOf(10, bytes.length - 2);
    if (before < 0 && from > 0) continue;
    const start = before + 1, stop = bytes.length - 1;
    return checkLine(bytes, start, stop) === 'good' && seqOf(bytes, start, stop) === seq &&
      crcOf(bytes, stop) === line;
  }
}

/** The data of the checkpoint in the file `path`, if it is that after event `seq` and whole. */
export function readCheckpointData(path: string, seq: number): string | undefined {
  return withFile(path, undefined, (fd, size) => {
    const found = readHead(fd, size);
    if (found === undefined || found.head.seq !== seq) return undefined;
    const body = Buffer.allocUnsafe(found.head.bytes);
    if (readFully(fd, body, 0, body.length, found.length) !== body.length) return undefined;
    return crc32(body) === found.head.data ? body.toString('utf8') : undefined;
  });
}

function readHead(fd: number, size: number): { head: Head; length: number } | undefined {
  let bytes = Buffer.alloc(0), newline = -1;
  for (let wanted = FIRST_BYTES; newline < 0 && bytes.length < size && wanted <= HEAD_LIMIT_BYTES; wanted *= 4) {
    bytes = Buffer.allocUnsafe(Math.min(wanted, size));
    bytes = bytes.subarray(0, readFully(fd, bytes, 0, bytes.length, 0));
    newline = bytes.indexOf(10);
  }
  const end = newline - 8;
  if (end <= 0) return undefined;
  const sum = crc32(bytes.subarray(0, end)).toString(16).padStart(8, '0');
  if (bytes.toString('latin1', end, newline) !== sum) return undefined;
  const head = JSON.parse(bytes.toString('utf8', 0, end)) as Head;
  if (head.checkpoint !== 1 || size !== newline + 1 + head.bytes) return undefined;
  return { head, length: newline + 1 };
}

function withFile<T>(path: string, missing: T, use: (fd: number, size: number) => T): T {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    return missing;
  }
  try {
    return use(fd, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}
