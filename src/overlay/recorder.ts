import { sameFingerprint, typeOf, type Attr, type Fingerprint } from '../core/attr.ts';
import type { Event, EventBody, ListBody, MissBody, ProcessInfo, ReadBody, ReadlinkBody, RefuseBody, Stamp, StatBody } from '../core/event.ts';
import type { TreePath } from '../core/path.ts';
import { NOTHING_SHOWN, showing } from '../core/shown.ts';
import type { Version } from '../core/version.ts';
import { fingerprintRecord, inodeRecord } from './attributes.ts';
import { withRange, type Range } from './pending-write.ts';
import type { Session } from './session.ts';

/** Most ranges one read event lists before the next range starts an event of its own. */
const RANGES_PER_EVENT = 256;

/** Where something was observed: its path, and the name as asked where that was another. */
export interface Observed {
  readonly path: TreePath;
  readonly via: string | undefined;
}

/** The `via` of an event, where the name as asked was another. */
export function viaField(at: Observed): { via?: string } {
  return at.via === undefined ? {} : { via: at.via };
}

/** What was read: its version where known, the lower's fingerprint where it came from there, the size of the whole. */
export interface ReadFacts {
  readonly version: Version | undefined;
  readonly print: Fingerprint | undefined;
  readonly size: number;
}

/**
 * Writes observations into the log, one actor's at a time. Adjacent ones that nothing could tell apart are one: the
 * same look again is not told again, and a read that goes on grows the ranges of the event that told of its start.
 */
export class Recorder {
  private readonly session: Session;
  /** What the tail read was made from: comparing these is cheaper than comparing records. */
  private lastPrint: Fingerprint | undefined = undefined;
  private lastStat: Attr | undefined = undefined;

  /** The flags told last, if nothing but what they went before has come since. */
  private flagged: Flagged | undefined = undefined;

  constructor(session: Session) {
    this.session = session;
  }

  miss(actor: string, at: Observed, call: string): void {
    const tail = this.session.tailOf(actor);
    if (tail !== undefined && tail.op === 'miss' && tail.call === call && samePlace(tail, at)) return;
    this.session.append(actor, placed({ op: 'miss', path: at.path, call } as Growing<MissBody>, at));
  }

  /** A call that was refused; the same one again is not told again. */
  refuse(actor: string, refused: Omit<RefuseBody, 'op'>): void {
    const tail = this.session.tailOf(actor);
    if (tail !== undefined && tail.op === 'refuse' && sameRefusal(tail, refused)) return;
    this.session.append(actor, { op: 'refuse', ...refused });
  }

  /**
   * A rule marks what a call touches. The same touch again is not told again, nor where only the event that it went before
   * came between.
   */
  flag(actor: string, at: Observed, rule: string, call: string): void {
    const { session, flagged } = this, { seq } = session.state;
    const goesOn = flagged !== undefined && flagged.actor === actor && flagged.process === session.process && samePlace(flagged, at)
      && (seq === flagged.seq || (seq === flagged.seq + 1 && this.isTailAt(actor, at)));
    const key = `${call} ${rule}`, told = goesOn ? flagged.told : new Set<string>();
    if (told.has(key)) return;
    session.append(actor, placed({ op: 'flag', path: at.path, rule, call } as Growing<FlagBody>, at));
    this.flagged = { ...at, actor, process: session.process, told: told.add(key), seq: session.state.seq };
  }

  private isTailAt(actor: string, at: Observed): boolean {
    const tail = this.session.tailOf(actor);
    return tail !== undefined && 'path' in tail && tail.path === at.path && tail.op !== 'refuse';
  }

  stat(actor: string, at: Observed, attr: Attr): void {
    const tail = this.session.tailOf(actor);
    if (tail !== undefined && tail.op === 'stat' && samePlace(tail, at) && sameStat(this.lastStat, attr)) return;
    this.lastStat = attr;
    const body: Growing<StatBody> = {
      op: 'stat', path: at.path, exists: typeOf(attr.mode), mode: attr.mode, uid: attr.uid, gid: attr.gid,
      size: attr.size, nlink: attr.nlink, ino: inodeRecord(attr.ino), rdev: attr.rdev,
      mtime: String(attr.mtime), ctime: String(attr.ctime),
    };
    this.session.append(actor, placed(body, at));
  }

  readlink(actor: string, at: Observed, target: string): void {
    const tail = this.session.tailOf(actor);
    if (tail !== undefined && tail.op === 'readlink' && samePlace(tail, at) && tail.target === target) return;
    this.session.append(actor, placed({ op: 'readlink', path: at.path, target } as Growing<ReadlinkBody>, at));
  }

  /** `lower`: the version of the lower directory's own list, where it is another. */
  list(actor: string, at: Observed, version: Version, count: number, lower?: Version): void {
    const tail = this.session.tailOf(actor);
    if (tail !== undefined && tail.op === 'list' && samePlace(tail, at) && tail.version === version && tail.lower === lower) return;
    const body: Growing<ListBody> = { op: 'list', path: at.path, version, count };
    if (lower !== undefined) body.lower = lower;
    this.session.append(actor, placed(body, at));
  }

  /** A read; `range` absent: of the whole. Gives the event to hand in again when the same descriptor reads on. */
  read(actor: string, at: Observed, facts: ReadFacts, range?: Range): Event {
    const tail = this.session.tailOf(actor);
    if (tail !== undefined && tail.op === 'read' && samePlace(tail, at)) {
      const grown = this.grown(tail, facts, range);
      if (grown !== undefined) return grown;
    }
    this.lastPrint = facts.print;
    return this.session.append(actor, readBody(at, facts, range && coalesced([], range, facts.size)));
  }

  /** A read by which its actor was shown `ranges` of the file, or all of it. `search`: what else was looked through does not count as seen. */
  shown(actor: string, at: Observed, facts: ReadFacts, ranges: readonly Range[] | 'whole', search: boolean): void {
    const merged = ranges === 'whole' ? 'whole' : showing(NOTHING_SHOWN, ranges, facts.size);
    // A range for each line that matched could be many: the fold would forget the shortest anyway.
    const body: Growing<ReadBody> = readBody(at, facts, merged === 'whole' ? undefined : merged);
    if (search) body.search = true;
    this.session.append(actor, body);
  }

  /** The tail read with more shown, `tail` itself where nothing is new, `undefined` where it is a read of its own. */
  private grown(tail: ReadBody & Stamp, facts: ReadFacts, range: Range | undefined): Event | undefined {
    if (tail.search === true || tail.size !== facts.size || !samePrint(this.lastPrint, facts.print)) return undefined;
    if (tail.version !== facts.version && tail.version !== undefined && facts.version !== undefined) return undefined;
    const version = facts.version ?? tail.version;
    const ranges = tail.ranges === undefined || range === undefined ? undefined : coalesced(tail.ranges, range, facts.size);
    if (ranges !== undefined && ranges.length > RANGES_PER_EVENT) return undefined;
    if (version === tail.version && sameRanges(ranges, tail.ranges)) return tail;
    const { seq, time, actor } = tail;
    const event = { seq, time, actor, ...readBody({ path: tail.path, via: tail.via }, { ...facts, version }, ranges) } as Event;
    this.session.regrow(event);
    return event;
  }
}

interface Flagged extends Observed {
  readonly actor: string;
  readonly process: ProcessInfo | undefined;
  /** By call and rule. */
  readonly told: Set<string>;
  readonly seq: number;
}

type FlagBody = Extract<EventBody, { op: 'flag' }>;

type Growing<T> = { -readonly [K in keyof T]: T[K] };

// Built by assignment: an object that is spread together from parts costs several times as much, at every event.

function readBody(at: Observed, facts: ReadFacts, ranges: readonly Range[] | undefined): ReadBody {
  const body: Growing<ReadBody> = { op: 'read', path: at.path, size: facts.size };
  if (at.via !== undefined) body.via = at.via;
  if (facts.version !== undefined) body.version = facts.version;
  if (facts.print !== undefined) body.fingerprint = fingerprintRecord(facts.print);
  if (ranges !== undefined) body.ranges = ranges;
  return body;
}

function placed<T extends { via?: string }>(body: T, at: Observed): T {
  if (at.via !== undefined) body.via = at.via;
  return body;
}

function samePlace(event: { path: TreePath; via?: string | undefined }, at: Observed): boolean {
  return event.path === at.path && event.via === at.via;
}

function samePrint(a: Fingerprint | undefined, b: Fingerprint | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && sameFingerprint(a, b));
}

function sameRefusal(a: Omit<RefuseBody, 'op'>, b: Omit<RefuseBody, 'op'>): boolean {
  return a.path === b.path && a.via === b.via && a.outside === b.outside && a.call === b.call && a.code === b.code && a.rule === b.rule;
}

function sameStat(a: Attr | undefined, b: Attr): boolean {
  return a !== undefined && sameFingerprint(a, b) && a.mode === b.mode && a.uid === b.uid && a.gid === b.gid && a.nlink === b.nlink;
}

function sameRanges(a: readonly Range[] | undefined, b: readonly Range[] | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.length === b.length &&
    a.every((range, at) => range[0] === b[at]?.[0] && range[1] === b[at]?.[1]));
}

/** `ranges` with one more; `undefined` when they are the whole of `size`. */
function coalesced(ranges: readonly Range[], [start, end]: Range, size: number): readonly Range[] | undefined {
  const all = withRange(ranges, start, end), [first] = all;
  return first !== undefined && first[0] === 0 && first[1] >= size ? undefined : all;
}
