import { encodeHeader } from '../core/encode.ts';
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { Refusal } from '../core/refusal.ts';
import type { Version } from '../core/version.ts';
import type { Growing, Readable } from './bytes.ts';
import { CorruptLogError } from './fault.ts';
import type { DamageReason } from './fault.ts';
import { CRC_BYTES, LineReader, checkLine, crcOf, sealLine, seqOf } from './line.ts';
import { OffsetIndex } from './offset.ts';
import type { Header } from '../core/format.ts';

/**
 * The log: line 1 is the header, every further line one event, `seq` without gaps. New lines are gathered in a tail
 * in memory and handed to the sink in one write. Which bytes the sink has and which only the tail has is not seen by
 * readers.
 */

/** A tail is written when it holds this much (decision 6 of the design). */
export const TAIL_BYTES = 64 * 1024;
/** The tail of a small session stays small: a thousand forks cost a thousand of these. */
const FIRST_TAIL_BYTES = 2 * 1024;

/** Where a log is known to be good up to: what opening may skip. */
export interface LogPlace {
  readonly seq: number;
  /** Place after the line of event `seq`. */
  readonly end: number;
  readonly offsets: OffsetIndex;
}

export interface OpenLogOptions {
  readonly header: Header;
  /** Place after the header line. */
  readonly end: number;
  /** Most bytes the whole log may have. */
  readonly limit: number;
  /** Checks begin here. */
  readonly from?: LogPlace;
  /** Shown every line that is good so far (a right crc over what means nothing takes intent); gives why it is none. */
  readonly inspect?: (line: string, seq: number) => Flaw | undefined;
  /** A seal: after which event the log had it is looked for. */
  readonly sought?: string;
}

/** What is wrong with a line. */
export interface Flaw {
  readonly reason: DamageReason;
  readonly detail?: string;
}

/** The lines of a log over any sink. Checks what it reads, and seals what it writes. */
export class Log implements Readable {
  readonly header: Header;
  lastSeq: number;
  /** Bytes after the last whole line, found when the log was opened. */
  tornBytes = 0;
  /** The event after which the log had the seal that was sought when it was opened. */
  soughtSeq: number | undefined = undefined;

  readonly #name: string;
  readonly #sink: Growing;
  /** Most bytes the whole log may have. */
  readonly #limit: number;
  readonly #offsets: OffsetIndex;
  /** Lines not in the sink yet: `#tail[0 … #length)`, which start at `#start` of the file. */
  #tail = Buffer.allocUnsafeSlow(FIRST_TAIL_BYTES);
  #length = 0;
  #start = 0;
  /** Place after the header line. */
  #first = 0;
  /** sha256 of all bytes before `#start`; absent in a reopened log until a seal is asked for. */
  #hash: Hash | undefined;

  private constructor(name: string, header: Header, sink: Growing, limit: number, offsets: OffsetIndex) {
    this.#name = name;
    this.header = header;
    this.#sink = sink;
    this.#limit = limit;
    this.#offsets = offsets;
    this.lastSeq = baseSeq(header);
  }

  /** A new log over an empty sink; its header line is handed to the sink at once. */
  static create(name: string, header: Header, sink: Growing, limit: number): Log {
    const log = new Log(name, header, sink, limit, new OffsetIndex());
    log.#hash = createHash('sha256');
    const line = headerLine(header);
    sink.append(line);
    log.#hash.update(line);
    log.#start = log.#first = sink.size;
    return log;
  }

  /**
   * An existing log. Checks every line behind `from` (where that is not given, all lines and seals) and throws
   * `CorruptLogError` at the first damage. A torn last line is left out and counted in `tornBytes`; the sink keeps it.
   */
  static open(name: string, sink: Growing, options: OpenLogOptions): Log {
    const { header, end, limit, from } = options;
    const log = new Log(name, header, sink, limit, from?.offsets ?? new OffsetIndex());
    log.#first = end;
    if (from !== undefined) {
      log.lastSeq = from.seq;
      log.#scan(from.end, undefined);
    } else log.#hash = log.#scan(end, createHash('sha256').update(readAll(sink, 0, end)), options);
    return log;
  }

  /** Bytes of the whole log, those in the tail included. */
  get size(): number {
    return this.#start + this.#length;
  }

  /** Bytes that only the tail holds. */
  get pending(): number {
    return this.#length;
  }

  get offsets(): OffsetIndex {
    return this.#offsets;
  }

  /** Whether the tail should be written before an event of `length` characters is added. */
  isFull(length: number): boolean {
    return this.#length > 0 && this.#length + length + CRC_BYTES > TAIL_BYTES;
  }

  /** Throws EFBIG where a line of so many bytes would exceed the limit. */
  demandRoom(bytes: number): void {
    if (this.#start + this.#length + bytes <= this.#limit) return;
    throw new Refusal('EFBIG', { reason: `log limit of ${this.#limit} bytes reached` });
  }

  /** Adds an event to the tail. Throws EFBIG where the log would exceed its limit; a wrong `seq` is a bug. */
  add(json: string): void {
    // Three bytes a UTF-16 unit is the most that UTF-8 takes.
    if (this.#tail.length - this.#length < json.length * 3 + CRC_BYTES) this.#grow(json.length * 3 + CRC_BYTES);
    const tail = this.#tail, start = this.#length;
    const end = start + tail.write(json, start, 'utf8');
    this.demandRoom(end - start + CRC_BYTES);
    const seq = this.lastSeq + 1;
    if (seqOf(tail, start, end) !== seq) throw new Error(`event ${seq} expected, got ${json.slice(0, 40)}`);
    this.#length = sealLine(tail, start, end);
    this.#offsets.add(seq, this.#start + start);
    this.lastSeq = seq;
  }

  /** Takes back the event added last, which is still in the tail. */
  takeBack(): void {
    const start = this.#length < 2 ? 0 : this.#tail.lastIndexOf(10, this.#length - 2) + 1;
    this.#length = start;
    this.#offsets.remove(this.lastSeq);
    this.lastSeq--;
  }

  /**
   * Hands the tail to the sink; `through`: and makes it survive a power cut. Where writing fails, the whole lines that
   * went out stay and the piece of a line behind them is cut off (or left as a torn tail where even that fails); where
   * the barrier fails, none of them stays. The fault is thrown; in memory the tail is as before.
   */
  write({ through }: { through: boolean }): void {
    if (this.#length > 0) this.#writeTail(through);
    else if (through) this.#sink.sync();
  }

  #writeTail(through: boolean): void {
    const lines = this.#tail.subarray(0, this.#length), before = this.#sink.size;
    try {
      this.#sink.append(lines);
    } catch (error) {
      const written = lines.subarray(0, this.#sink.size - before);
      this.#cut(before + written.lastIndexOf(10) + 1);
      throw error;
    }
    try {
      if (through) this.#sink.sync();
    } catch (error) {
      this.#cut(before);
      throw error;
    }
    this.#hash?.update(lines);
    this.#start += this.#length;
    this.#length = 0;
    if (this.#tail.length > 3 * TAIL_BYTES) this.#tail = Buffer.allocUnsafeSlow(TAIL_BYTES);
  }

  #cut(size: number): void {
    try {
      if (this.#sink.size > size) this.#sink.truncate(size);
    } catch {
      // The write has failed already and its fault is what counts; opening cuts a torn line.
    }
  }

  /** Cuts what `tornBytes` counts off the sink. */
  cutTorn(): void {
    if (this.#sink.size > this.#start) this.#sink.truncate(this.#start);
  }

  close(): void {
    this.#sink.close();
  }

  /** Takes in lines that another process has appended to the sink since. */
  readOn(): void {
    this.#sink.measure();
    this.#hash = undefined;
    this.#scan(this.#start, undefined);
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    const end = Math.min(position + length, this.size);
    let at = position;
    if (at < Math.min(end, this.#start)) {
      at += this.#sink.read(into, offset, Math.min(end, this.#start) - at, at);
    }
    if (at >= this.#start && at < end) {
      into.set(this.#tail.subarray(at - this.#start, end - this.#start), offset + at - position);
      at = end;
    }
    return Math.max(0, at - position);
  }

  /** Lines of the events `from … to`, each checked again; throws `CorruptLogError` where one is not what it was. */
  *lines(from: number, to: number): IterableIterator<string> {
    const first = Math.max(from, baseSeq(this.header) + 1), last = Math.min(to, this.lastSeq);
    if (first > last) return;
    const near = this.#offsets.before(first);
    const reader = new LineReader(this, near.offset, this.#offsets.after(last) ?? this.size);
    for (let seq = near.seq; seq <= last; seq++) {
      if (!reader.next()) this.#damaged(seq, reader.position, 'seq gap', 'the file ends here');
      if (seq < first) continue;
      this.#check(reader, seq);
      yield reader.text();
    }
  }

  /** Place after the line of event `seq`, and the line's crc as written. */
  placeAfter(seq: number): { end: number; crc: string } {
    const near = this.#offsets.before(seq);
    const reader = new LineReader(this, near.offset, this.#offsets.after(seq) ?? this.size);
    for (let at = near.seq; at <= seq; at++) {
      if (!reader.next()) this.#damaged(at, reader.position, 'seq gap', 'the file ends here');
    }
    this.#check(reader, seq);
    return { end: reader.position + reader.end - reader.start + 1, crc: crcOf(reader.bytes, reader.end) };
  }

  /** sha256 over all bytes of the log up to event `seq`, the tail included. Of a reopened log it reads the file, the first time. */
  seal(seq = this.lastSeq): Version {
    if (seq < this.lastSeq) return this.#sealBefore(seq < baseSeq(this.header) + 1 ? this.#first : this.placeAfter(seq).end);
    if (this.#hash === undefined) {
      this.#hash = createHash('sha256');
      const buffer = Buffer.allocUnsafe(Math.min(1 << 20, this.#start));
      for (let at = 0; at < this.#start;) {
        const got = this.#sink.read(buffer, 0, Math.min(buffer.length, this.#start - at), at);
        if (got === 0) throw new Refusal('EIO', { reason: `${this.#name} ends at byte ${at}, not ${this.#start}` });
        this.#hash.update(buffer.subarray(0, got));
        at += got;
      }
    }
    return `sha256:${this.#hash.copy().update(this.#tail.subarray(0, this.#length)).digest('hex')}` as Version;
  }

  #sealBefore(end: number): Version {
    const hash = createHash('sha256'), buffer = Buffer.allocUnsafe(Math.min(1 << 20, end));
    for (let at = 0; at < end;) {
      const got = this.read(buffer, 0, Math.min(buffer.length, end - at), at);
      if (got === 0) throw new Refusal('EIO', { reason: `${this.#name} ends at byte ${at}, not ${end}` });
      hash.update(buffer.subarray(0, got));
      at += got;
    }
    return `sha256:${hash.digest('hex')}` as Version;
  }

  #scan(position: number, hash: Hash | undefined, { inspect, sought }: Partial<OpenLogOptions> = {}): Hash | undefined {
    const { size } = this.#sink;
    const reader = new LineReader(this.#sink, position, size, hash);
    while (reader.next()) {
      const seq = this.lastSeq + 1;
      if (sought !== undefined && isSeal(reader.hashBefore(), sought)) this.soughtSeq = this.lastSeq;
      this.#check(reader, seq);
      if (hash !== undefined) this.#checkSeal(reader, seq);
      const flaw = inspect?.(reader.text(), seq);
      if (flaw !== undefined) this.#damaged(seq, reader.position, flaw.reason, flaw.detail);
      this.#offsets.add(seq, reader.position);
      this.lastSeq = seq;
    }
    this.#start = reader.position;
    this.tornBytes = size - this.#start;
    if (sought !== undefined && isSeal(reader.hashBefore(), sought)) this.soughtSeq = this.lastSeq;
    return hash && reader.hashBefore();
  }

  #check(reader: LineReader, seq: number): void {
    const { bytes, start, end } = reader;
    const state = checkLine(bytes, start, end);
    const found = seqOf(bytes, start, end);
    if (state === 'good' && found === seq) return;
    if (state !== 'good') this.#damaged(seq, reader.position, isJson(reader.text()) ? state : 'not JSON');
    if (found < 0) this.#damaged(seq, reader.position, 'no seq');
    this.#damaged(seq, reader.position, found > seq ? 'seq gap' : 'seq repeated', `seq ${found} where ${seq} belongs`);
  }

  #checkSeal(reader: LineReader, seq: number): void {
    const { bytes, start, end } = reader;
    const sealed = sealIn(bytes, start, end);
    if (sealed !== undefined && sealed !== `sha256:${reader.hashBefore().digest('hex')}`) {
      this.#damaged(seq, reader.position, 'seal mismatch', 'some line before it is not what was sealed');
    }
  }

  #damaged(seq: number, position: number, reason: DamageReason, detail?: string): never {
    throw new CorruptLogError({
      file: this.#name, line: seq - baseSeq(this.header) + 1, reason, ...(detail !== undefined && { detail }),
      goodSeq: seq - 1, goodBytes: position,
    });
  }

  #grow(need: number): void {
    let size = this.#tail.length;
    while (size - this.#length < need) size = size < TAIL_BYTES ? size * 2 : size + TAIL_BYTES;
    const tail = Buffer.allocUnsafeSlow(size);
    this.#tail.copy(tail, 0, 0, this.#length);
    this.#tail = tail;
  }
}

/** The seq that a log starts after: 0, or the fork point. */
export function baseSeq(header: Header): number {
  return header.parent?.seq ?? 0;
}

/** Line 1 of a log. */
export function headerLine(header: Header): Uint8Array {
  const json = Buffer.from(encodeHeader(header));
  const line = Buffer.allocUnsafe(json.length + CRC_BYTES);
  json.copy(line);
  sealLine(line, 0, json.length);
  return line;
}

function isSeal(hash: Hash, seal: string): boolean {
  return `sha256:${hash.digest('hex')}` === seal;
}

/** A seal's line is short; longer ones are not parsed to find out. */
const SEAL_LINE_BYTES = 4096;
const SEAL_MARK = Buffer.from('"op":"seal"');

/** The hash in a line that is a seal record. */
function sealIn(bytes: Buffer, start: number, end: number): string | undefined {
  if (end - start > SEAL_LINE_BYTES) return undefined;
  const line = bytes.subarray(start, end);
  if (line.indexOf(SEAL_MARK) < 0) return undefined;
  const text = line.toString('utf8');
  if (!isJson(text)) return undefined;
  const event = JSON.parse(text) as { op?: unknown; hash?: unknown };
  return event.op === 'seal' ? String(event.hash) : undefined;
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return false;
  }
}

function readAll(source: Readable, position: number, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(length);
  return bytes.subarray(0, source.read(bytes, 0, length, position));
}
