import { closeSync, fsyncSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import type { TreePath } from '../core/path.ts';
import { checkLine, CRC_BYTES, LineReader, sealLine } from '../store/line.ts';
import type { Entry } from './entry.ts';
import { JournalError } from './fault.ts';
import type { SystemName } from './ground.ts';

/**
 * The journal of one commit: what it is going to do, written before it is done, so that whoever finds it can go back.
 *
 * JSON Lines, each ending with the crc of the log's lines (`store/line.ts`):
 *
 *     {"palimpsest-journal":1,"id":"…","root":"…","confirms":true,"crc":"…"}    which format, whose it is, whether to tell
 *     {"volume":1,"path":"mnt/.palimpsest-commit-…","crc":"…"}    one more staging directory; before it is made
 *     {"n":0,"act":"swap",…,"crc":"…"}                            an entry (`entry.ts`); `n` never falls
 *     {"end":3,"crc":"…"}                                         how many entries there were: it is whole
 *
 * What it is called says how far the commit is. `staging`: it is still being written, nothing has changed. `journal`: some of it may
 * have been done. `done`: all of it. `confirmed`: all of it, and the session whose commit it is has written that down.
 * `undone`: all of it has been taken back. Each becomes the next by a rename.
 */
const FORMAT = 1;

/** Largest line, in bytes. */
const LINE_BYTES = 1 << 20;
const BUFFER_BYTES = 1 << 16;
/** A journal of at most so many entries is not read again by who wrote it; about 1 KiB each. */
const KEPT_ENTRIES = 8192;
/** How the line of an entry begins. */
const ENTRY_START = Buffer.from('{"n":');

export type Phase = 'staging' | 'journal' | 'done' | 'confirmed' | 'undone';
export const PHASES: readonly Phase[] = ['confirmed', 'done', 'undone', 'journal', 'staging'];

export interface VolumeLine {
  readonly volume: number;
  readonly path: TreePath;
}

/** Whether `text` can be the id of a commit. */
export function isCommitId(text: string): boolean {
  return /^[\w-]{1,64}$/.test(text);
}

/** Writes a journal. */
export class JournalWriter {
  private readonly fd: number;
  private readonly bytes = Buffer.allocUnsafe(BUFFER_BYTES + LINE_BYTES + CRC_BYTES);
  private filled = 0;
  private count = 0;
  private entries: Entry[] | undefined = [];

  /** `confirms`: somebody has to be told when it is done. */
  constructor(file: SystemName, id: string, root: string, confirms: boolean) {
    this.fd = openSync(file, 'wx', 0o600);
    this.line({ 'palimpsest-journal': FORMAT, id, root, confirms });
  }

  /** Written out before it returns. */
  volume(index: number, path: TreePath): void {
    const line: VolumeLine = { volume: index, path };
    this.line(line);
    this.flush();
  }

  entry(entry: Entry): void {
    this.count++;
    if (this.count <= KEPT_ENTRIES) this.entries?.push(entry);
    else this.entries = undefined;
    this.line(entry);
  }

  /** All entries, where they are few; otherwise they are to be read from the file. */
  get kept(): readonly Entry[] | undefined {
    return this.entries;
  }

  /** The journal is whole. */
  end(): void {
    this.line({ end: this.count });
    this.flush();
  }

  sync(): void {
    fsyncSync(this.fd);
  }

  close(): void {
    closeSync(this.fd);
  }

  private line(value: object): void {
    const text = JSON.stringify(value);
    if (text.length * 3 > LINE_BYTES) throw new RangeError('a line of a journal is too long');
    const start = this.filled;
    // Without its last brace, which comes with the crc.
    const end = start + this.bytes.write(text, start, 'utf8') - 1;
    this.filled = sealLine(this.bytes, start, end);
    if (this.filled >= BUFFER_BYTES) this.flush();
  }

  private flush(): void {
    for (let at = 0; at < this.filled;) at += writeSync(this.fd, this.bytes, at, this.filled - at);
    this.filled = 0;
  }
}

/** A journal as it is found. */
export class Journal {
  readonly id: string;
  /** Whether somebody has to be told when it is done. */
  readonly confirms: boolean;
  readonly volumes: readonly VolumeLine[];
  /** Whether its last line is there. */
  readonly isWhole: boolean;
  private readonly fd: number;
  private readonly size: number;
  private readonly name: string;
  /** Where the entries are. */
  private readonly places: number[] = [];

  /**
   * Reads and checks all of the file; `name` is what it is called to the user. Throws `JournalError` where it is of a newer format,
   * or damaged: one that is still being written may end anywhere, any other may not.
   */
  constructor(file: SystemName, name: string, phase: Phase) {
    this.fd = openSync(file, 'r');
    this.name = name;
    try {
      this.size = fstatSync(this.fd).size;
      const volumes: VolumeLine[] = [];
      let id: string | undefined, confirms = false, isWhole = false;
      for (const reader of this.lines(phase)) {
        if (isWhole) throw this.damaged('it goes on behind its end');
        if (id !== undefined && isEntry(reader)) {
          this.places.push(reader.position);
          continue;
        }
        const value = parsed(reader);
        if (id === undefined) {
          id = this.identify(value);
          confirms = value['confirms'] === true;
        } else if ('volume' in value) volumes.push(value as unknown as VolumeLine);
        else if (value['end'] === this.places.length) isWhole = true;
        else throw this.damaged('entries are missing');
      }
      if (phase !== 'staging' && !isWhole) throw this.damaged('its end is missing');
      this.id = id ?? '';
      this.confirms = confirms;
      this.volumes = volumes;
      this.isWhole = isWhole;
    } catch (error) {
      closeSync(this.fd);
      throw error;
    }
  }

  get count(): number {
    return this.places.length;
  }

  /** From the first to the last, or from the last to the first. */
  * entries(direction: 'forward' | 'backward' = 'forward'): Generator<Entry> {
    if (direction === 'forward') {
      for (const reader of this.lines('journal')) if (isEntry(reader)) yield parsed(reader) as unknown as Entry;
      return;
    }
    let end = this.size;
    for (let index = this.places.length - 1; index >= 0; index--) {
      const start = this.places[index] as number;
      yield this.at(start, end);
      end = start;
    }
  }

  close(): void {
    closeSync(this.fd);
  }

  /** The entry that begins at `start` and ends somewhere before `limit`. */
  private at(start: number, limit: number): Entry {
    const reader = new LineReader(this.source(), start, limit);
    if (!reader.next()) throw this.damaged('it became shorter');
    this.check(reader);
    return parsed(reader) as unknown as Entry;
  }

  /** One that is still being written ends with its first bad line. */
  private * lines(phase: Phase): Generator<LineReader> {
    const reader = new LineReader(this.source(), 0, this.size);
    while (reader.next()) {
      if (phase === 'staging' && checkLine(reader.bytes, reader.start, reader.end) !== 'good') return;
      this.check(reader);
      yield reader;
    }
  }

  private source(): { size: number; read(into: Uint8Array, offset: number, length: number, position: number): number } {
    return { size: this.size, read: (into, offset, length, position) => readSync(this.fd, into, offset, length, position) };
  }

  private check(reader: LineReader): void {
    if (checkLine(reader.bytes, reader.start, reader.end) !== 'good') throw this.damaged(`the line at byte ${reader.position} is not as it was written`);
  }

  private identify(value: Record<string, unknown>): string {
    const format = value['palimpsest-journal'];
    if (typeof format === 'number' && format > FORMAT) {
      throw new JournalError('ERR_JOURNAL_NEWER', this.name, `has format ${format}, and this version knows ${FORMAT} only: a newer one has to finish it`);
    }
    if (format !== FORMAT) throw this.damaged('it has no header');
    const id = value['id'];
    // It becomes part of names.
    if (typeof id !== 'string' || !isCommitId(id)) throw this.damaged('its id is none');
    return id;
  }

  private damaged(what: string): JournalError {
    return new JournalError('ERR_JOURNAL_DAMAGED', this.name,
      `is damaged (${what}), so nothing was touched; beside it lie the files that were replaced or removed, as d0, d1, …`);
  }
}

function isEntry({ bytes, start }: LineReader): boolean {
  return bytes.compare(ENTRY_START, 0, ENTRY_START.length, start, start + ENTRY_START.length) === 0;
}

function parsed(reader: LineReader): Record<string, unknown> {
  return JSON.parse(reader.text()) as Record<string, unknown>;
}
