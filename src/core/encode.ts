import type { Event, FingerprintRecord, LowerBase, ProcessInfo } from './event.ts';
import { BODY_TABLES, FORMAT_VERSION, HEADER_TABLE, LINE_TABLES, isObject } from './format.ts';
import type { Header } from './format.ts';
import { CorruptEventError, digits, inodeText, isPlain, quote, toBase64, SPLICES } from './kind.ts';

export { CorruptEventError } from './kind.ts';

/**
 * Events to JSON text and back: `decodeEvent(encodeEvent(e) + '}')` deep-equals e. `format.ts` says what a line holds. The ops
 * that make up nearly all of a log have templates by hand, three times as fast as the table; a test holds them to it.
 */

/**
 * The JSON object of an event without its final `}` and without `crc`, both of which the store adds. Throws RangeError for
 * a number that is no exact integer, since such a line could not be read again.
 */
export function encodeEvent(event: Event): string {
  if (event.kept !== undefined) return encodeByTable(event);
  switch (event.op) {
    case 'read': return head(event) + place(event.path, event.via) +
      (event.version === undefined ? '' : ',"version":"' + event.version + '"') +
      (event.fingerprint === undefined ? '' : fingerprint(event.fingerprint)) +
      ',"size":' + digits(event.size) +
      (event.ranges === undefined ? '' : ',"ranges":' + ranges(event.ranges)) + (event.search === undefined ? '' : ',"search":true') +
      (event.blob === undefined ? '' : ',"blob":"' + event.blob + '"') +
      (event.process === undefined ? '' : processOf(event.process));
    case 'miss': return head(event) + place(event.path, event.via) + ',"call":' + quote(event.call) +
      (event.process === undefined ? '' : processOf(event.process));
    case 'stat': return head(event) + place(event.path, event.via) + ',"exists":"' + event.exists +
      '","mode":' + digits(event.mode) + ',"uid":' + digits(event.uid) + ',"gid":' + digits(event.gid) +
      ',"size":' + digits(event.size) + ',"nlink":' + digits(event.nlink) + ',"ino":' + inodeText(event.ino) +
      ',"rdev":' + digits(event.rdev) + ',"mtime":"' + event.mtime + '","ctime":"' + event.ctime + '"' +
      (event.process === undefined ? '' : processOf(event.process));
    case 'list': return head(event) + place(event.path, event.via) +
      ',"version":"' + event.version + '","count":' + digits(event.count) +
      (event.lower === undefined ? '' : ',"lower":"' + event.lower + '"') +
      (event.blob === undefined ? '' : ',"blob":"' + event.blob + '"') +
      (event.process === undefined ? '' : processOf(event.process));
    case 'write':
      if (event.extents !== undefined) return encodeByTable(event);
      return head(event) + place(event.path, event.via) +
        (event.version === undefined ? '' : ',"version":"' + event.version + '"') +
        ',"size":' + digits(event.size) + ',"mode":' + digits(event.mode) + ',"ino":' + inodeText(event.ino) +
        (event.created === undefined ? ''
          : ',"created":{"uid":' + digits(event.created.uid) + ',"gid":' + digits(event.created.gid) +
            (event.created.at === undefined ? '' : ',"at":"' + event.created.at + '"') + '}') +
        (event.blob === undefined ? '' : ',"blob":"' + event.blob + '"') +
        (event.before === undefined ? '' : ',"before":"' + event.before + '"') +
        (event.splices === undefined ? '' : ',"splices":' + SPLICES.write(event.splices)) + mutation(event);
    case 'rename': return head(event) + place(event.path, event.via) + name('to', event.to) +
      (event.exchange === undefined ? '' : ',"exchange":true') +
      (event.onto === undefined ? '' : ',"onto":' + lowerBase(event.onto)) +
      (event.whiteout === undefined ? '' : ',"whiteout":true') + mutation(event);
    case 'delete': return head(event) + place(event.path, event.via) +
      (event.whiteout === undefined ? '' : ',"whiteout":true') + mutation(event);
    default: return encodeByTable(event);
  }
}

/** `encodeEvent` by the table alone: the same text for every event. */
export function encodeByTable(event: Event): string {
  const table = BODY_TABLES.get(event.op);
  if (table === undefined) throw new RangeError(`unknown op "${event.op}"`);
  return head(event) + table.write(event);
}

/** The event of a log line, with or without its `crc` (which is the store's to check). Throws `CorruptEventError`. */
export function decodeEvent(text: string): Event {
  const line = parse(text);
  const op = line['op'];
  const table = typeof op === 'string' ? LINE_TABLES.get(op) : undefined;
  if (table === undefined) throw new CorruptEventError(op === undefined ? 'field "op" is missing' : `unknown op ${JSON.stringify(op)}`);
  delete line['crc'];
  table.read(line, '');
  return line as unknown as Event;
}

/** The header line, in the form `encodeEvent` gives. */
export function encodeHeader(header: Header): string {
  return '{' + HEADER_TABLE.write(header).slice(1);
}

/** The header of a log. Throws `CorruptEventError` for another format version or anything missing, by name. */
export function decodeHeader(text: string): Header {
  const line = parse(text);
  const version = line['palimpsest'];
  if (version === undefined) throw new CorruptEventError('no palimpsest log: the first line has no field "palimpsest"');
  if (version !== FORMAT_VERSION) {
    throw new CorruptEventError(`unknown format version ${JSON.stringify(version)}; this program reads version ${FORMAT_VERSION}`);
  }
  delete line['crc'];
  HEADER_TABLE.read(line, '');
  return line as unknown as Header;
}

function parse(text: string): { [key: string]: unknown } {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new CorruptEventError('no JSON', error);
  }
  if (!isObject(json)) throw new CorruptEventError('no JSON object');
  return json;
}

/** The actor of the last event and its JSON text: runs of one actor are the rule. */
let lastActor = '', lastActorText = '""';

function head(event: Event): string {
  if (event.actor !== lastActor) {
    lastActorText = quote(event.actor);
    lastActor = event.actor;
  }
  return '{"seq":' + digits(event.seq) + ',"time":"' + event.time + '","actor":' + lastActorText + ',"op":"' + event.op + '"';
}

function place(path: string, via: string | undefined): string {
  const text = name('path', path);
  return via === undefined ? text : text + name('via', via);
}

function name(key: string, value: string): string {
  if (isPlain(value)) return ',"' + key + '":"' + value + '"';
  return value.isWellFormed() ? ',"' + key + '":' + quote(value) : ',"' + key + '64":"' + toBase64(value) + '"';
}

function fingerprint({ dev, ino, size, mtime, ctime }: FingerprintRecord): string {
  return ',"fingerprint":{"dev":' + inodeText(dev) + ',"ino":' + inodeText(ino) + ',"size":' + digits(size) +
    ',"mtime":"' + mtime + '","ctime":"' + ctime + '"}';
}

/** The end of a change's line. */
function mutation({ mtime, lower, unlinked, dev, process }: Extract<Event, { op: 'write' | 'rename' | 'delete' }>): string {
  return ',"mtime":"' + mtime + '"' + (lower === undefined ? '' : ',"lower":' + lowerBase(lower)) +
    (unlinked === undefined ? '' : ',"unlinked":true') + (dev === undefined ? '' : ',"dev":' + inodeText(dev)) +
    (process === undefined ? '' : processOf(process));
}

function lowerBase(base: LowerBase): string {
  return '{"type":"' + base.type + '","mode":' + digits(base.mode) + ',"uid":' + digits(base.uid) + ',"gid":' + digits(base.gid) +
    ',"size":' + digits(base.size) + ',"nlink":' + digits(base.nlink) + ',"dev":' + inodeText(base.dev) +
    ',"ino":' + inodeText(base.ino) + (base.rdev === undefined ? '' : ',"rdev":' + digits(base.rdev)) +
    ',"mtime":"' + base.mtime + '","ctime":"' + base.ctime + '"' +
    (base.atime === undefined ? '' : ',"atime":"' + base.atime + '"') +
    (base.birthtime === undefined ? '' : ',"birthtime":"' + base.birthtime + '"') +
    (base.version === undefined ? '' : ',"version":"' + base.version + '"') +
    (base.target === undefined ? '' : name('target', base.target)) + '}';
}

function ranges(list: readonly (readonly [number, number])[]): string {
  let text = '[';
  for (const [start, end] of list) text += (text === '[' ? '[' : ',[') + digits(start) + ',' + digits(end) + ']';
  return text + ']';
}

function processOf({ pid, name: command, parent, inferred }: ProcessInfo): string {
  return ',"process":{"pid":' + digits(pid) + ',"name":' + quote(command) +
    (parent === undefined ? '' : ',"parent":' + digits(parent)) +
    (inferred === undefined ? '' : ',"inferred":' + inferred) + '}';
}
