import type { Event, Op } from '../index.ts';
import { paint } from './paint.ts';
import { quoted, visible } from './text.ts';

/** An event in a line. */

/** Every op, by how it is painted. */
const PAINT: Readonly<Record<Op, (text: string) => string>> = {
  read: plain, list: plain, stat: paint.dim, readlink: paint.dim, miss: paint.yellow,
  write: paint.green, truncate: paint.green, mkdir: paint.green, mknod: paint.green, symlink: paint.green, link: paint.green,
  rename: paint.cyan, delete: paint.red, chmod: paint.magenta, chown: paint.magenta, utimes: paint.magenta,
  setxattr: paint.magenta, removexattr: paint.magenta, discard: paint.red, undo: paint.red,
  run: paint.bold, exit: paint.bold, mark: paint.bold, refuse: paint.red, flag: paint.red, fork: paint.bold, merge: paint.bold,
  commit: paint.bold, revert: paint.bold, rules: paint.bold, seal: paint.dim,
};

/** The names of all ops. */
export const OPS = Object.keys(PAINT) as readonly Op[];

const OP_WIDTH = Math.max(...OPS.map(({ length }) => length));
const SEQ_WIDTH = 6;
/** A column of names is no wider; longer ones stick out. Of a run it is so wide from its beginning, for the processes to come. */
const WHO_WIDTH = 30, RUN_WIDTH = 18;

/** What makes lines of events: number, time, who, op and what. A column is as wide as its widest so far. */
export function sentences(): (event: Event) => string {
  let width = 0;
  return (event) => {
    const who = whoOf(event);
    width = Math.max(width, Math.min(WHO_WIDTH, who.length), event.op === 'run' || event.process !== undefined ? RUN_WIDTH : 0);
    return line(event, who.padEnd(width));
  };
}

function whoOf({ actor, process }: Event): string {
  return visible(actor) + (process === undefined ? '' : ` ${visible(process.name)}[${process.pid}]`);
}

function line(event: Event, who: string): string {
  const { seq, time, op } = event;
  return `${String(seq).padStart(SEQ_WIDTH)} ${paint.dim(time)} ${who} ${PAINT[op](op.padEnd(OP_WIDTH))} ${words(event)}`.trimEnd();
}

function words(event: Event): string {
  switch (event.op) {
    case 'read': return name(event) + note(...ranges(event.ranges, event.size), short(event.version));
    case 'list': return name(event) + note(event.count === 1 ? '1 name' : `${event.count} names`, short(event.version));
    case 'stat': return name(event) + note(event.exists);
    case 'readlink': return name(event) + ' -> ' + quoted(event.target);
    case 'miss': return name(event) + note(event.call);
    case 'write': return name(event) + note(event.created && 'new', `${event.size} bytes`, short(event.version));
    case 'truncate': return name(event) + note(`to ${event.size} bytes`);
    case 'mkdir': return name(event);
    case 'mknod': return name(event) + note(event.type);
    case 'symlink': return name(event) + ' -> ' + quoted(event.target);
    case 'link': return `${quoted(event.to)} = ${name(event)}`;
    case 'rename': return `${name(event)} ${event.exchange === true ? '⇄' : '→'} ${quoted(event.to)}`;
    case 'delete': return name(event);
    case 'chmod': return name(event) + note((event.mode & 0o7777).toString(8));
    case 'chown': return name(event) + note(`${event.uid}:${event.gid}`);
    case 'utimes': return name(event) + note(isoOf(event.mtime));
    case 'setxattr': case 'removexattr': return name(event) + note(event.name);
    case 'discard': return event.paths === undefined ? 'all changes' : event.paths.map((path) => quoted(path)).join(' ');
    case 'undo': return note(`${event.events.length} events`).trimStart();
    case 'run': return event.argv.map((word) => shellWord(word)).join(' ') + note(`in ${event.cwd}`);
    case 'exit': return event.signal === undefined ? `status ${event.status}` : `by ${event.signal}`;
    case 'mark': return visible(event.label) + (event.data === undefined ? '' : ' ' + paint.dim(visible(JSON.stringify(event.data))));
    case 'refuse': return `${visible(event.code)} ${visible(event.call)} ${quoted(event.outside ?? event.path ?? '')}` +
      note(event.rule && `rule ${event.rule}`, event.outside && 'outside the root');
    case 'flag': return `${visible(event.call)} ${name(event)}` + note(`rule ${event.rule}`);
    case 'fork': return visible(event.name);
    case 'merge': return `${visible(event.session)} at ${event.seq}`;
    case 'commit': return visible(event.id) + note(`${event.changes} changes`);
    case 'revert': return visible(event.id);
    case 'rules': return event.rules.map(({ effect, match, on }) => visible(effect) + ' ' + quoted(match) + note(on?.join(' '))).join(', ');
    case 'seal': return paint.dim(short(event.hash) ?? '');
    default: return unreachable(event);
  }
}

function name({ path, via }: { path: string; via?: string }): string {
  return (path === '' ? '.' : quoted(path)) + (via === undefined ? '' : paint.dim(` (via ${quoted(via)})`));
}

function note(...parts: readonly (string | false | undefined)[]): string {
  const said = parts.filter((part) => typeof part === 'string' && part !== '').map((part) => visible(part as string));
  return said.length === 0 ? '' : ' ' + paint.dim(`(${said.join(', ')})`);
}

function ranges(shown: readonly (readonly [number, number])[] | undefined, size: number): string[] {
  if (shown === undefined) return [`${size} bytes`];
  const bytes = shown.reduce((sum, [start, end]) => sum + end - start, 0);
  return [`${bytes} of ${size} bytes`];
}

/** The first digits of a version: enough to tell versions apart by eye. */
export function short(version: string | undefined): string | undefined {
  return version?.slice(0, 'sha256:'.length + 12);
}

function isoOf(nanoseconds: string): string {
  const ms = Number(BigInt(nanoseconds) / 1_000_000n);
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : nanoseconds;
}

function shellWord(word: string): string {
  const shown = visible(word);
  return shown === word && /^[\w@%+=:,./-]+$/.test(word) ? word : shown === word ? `'${word.replaceAll("'", "'\\''")}'` : quoted(word);
}

function plain(text: string): string {
  return text;
}

function unreachable(event: never): never {
  throw new TypeError(`no words for ${JSON.stringify(event)}`);
}
