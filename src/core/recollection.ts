import type { FingerprintRecord, Inode, Nanoseconds } from './event.ts';
import { digits, inodeText, quote } from './kind.ts';
import { initialObservations } from './observation.ts';
import type { LinkLook, Observations, StatLook, Trace } from './observation.ts';
import type { Owner } from './owner.ts';
import { NOTHING_SHOWN } from './shown.ts';
import type { Shown } from './shown.ts';
import type { Version } from './version.ts';

/**
 * Observations as JSON text for a checkpoint, and back. Nested lists instead of objects: a third of the size, and a million rows
 * are not a million times the same keys.
 *
 *     all      [[actor or null, seq, other] of the last change, actor, trace, actor, trace, …]
 *     trace    [seen, stat, link, emptied + 1, [name, trace, name, trace, …]]
 *     seen     0 unseen | seq absent | [seq, content, version, fingerprint, shown]
 *     content  0 the same seq | -1 none | seq          version   0 | 64 hex digits
 *     shown    1 whole | 0 nothing | [start, end, start, end, …]
 *     fingerprint, stat    [dev or type, ino, size, mtime, ctime], of a stat with its seq at the end
 *
 * What is missing at the end of a list is 0.
 */
export function observationsToJson(state: Observations): string {
  const { actor, seq, other } = state.change;
  let text = '[[' + (actor === undefined ? 'null' : quote(actor)) + ',' + seq + ',' + other + ']';
  for (const [name, trace] of state.actors) text += ',' + quote(name) + ',' + traceText(trace);
  return text + ']';
}

/** The observations that `observationsToJson` wrote, parsed. Throws TypeError for what it cannot have written. */
export function observationsFromJson(json: unknown): Observations {
  const state = initialObservations(), [change, ...actors] = list(json), [actor, seq, other] = list(change);
  state.change = { actor: actor as string | null ?? undefined, seq: seq as number, other: other as number };
  for (let at = 0; at < actors.length; at += 2) state.actors.set(actors[at] as string, traceOf(state.owner, list(actors[at + 1])));
  return state;
}

function traceText(trace: Trace): string {
  const { seen, stat, link, emptied, children } = trace;
  let text = '[' + seenText(seen);
  if (stat === undefined && link === undefined && emptied === undefined && children === undefined) return text + ']';
  text += stat === undefined ? ',0' : ',["' + stat.exists + '",' + inodeText(stat.ino) + ',' + digits(stat.size) +
    ',"' + stat.mtime + '","' + stat.ctime + '",' + stat.seq + ']';
  text += link === undefined ? ',0' : ',[' + link.seq + ',' + quote(link.target) + ']';
  text += emptied === undefined ? ',0' : ',' + (emptied + 1);
  if (children === undefined) return text + ']';
  // Joined directory by directory: one string grown to 100 MB is a tree of 20 million pieces before it is flat.
  const names: string[] = [];
  for (const [name, child] of children) names.push(quote(name), traceText(child));
  return text + ',[' + names.join() + ']]';
}

function seenText(seen: Trace['seen']): string {
  if (seen === undefined) return '0';
  if (seen.kind === 'absent') return '' + seen.seq;
  const { seq, contentSeq, version, fingerprint, shown } = seen;
  return '[' + seq + ',' + (contentSeq === seq ? 0 : contentSeq ?? -1) +
    (version === undefined ? ',0' : ',"' + version.slice(VERSION_PREFIX.length) + '"') +
    (fingerprint === undefined ? ',0,' : ',[' + inodeText(fingerprint.dev) + ',' + inodeText(fingerprint.ino) + ',' +
      fingerprint.size + ',"' + fingerprint.mtime + '","' + fingerprint.ctime + '"],') +
    (shown === 'whole' ? '1]' : shown.length === 0 ? '0]' : '[' + shown.join() + ']]');
}

const VERSION_PREFIX = 'sha256:';

// Here and below by index: at opening this code is cold, and taking a list apart by a pattern then costs twice as much.
function traceOf(owner: Owner, json: readonly unknown[]): Trace {
  const seen = json[0], stat = json[1], link = json[2], emptied = json[3], names = json[4];
  return {
    owner,
    seen: seenOf(seen),
    stat: stat === undefined || stat === 0 ? undefined : statOf(list(stat)),
    link: link === undefined || link === 0 ? undefined : linkOf(list(link)),
    emptied: emptied === undefined || emptied === 0 ? undefined : emptied as number - 1,
    children: names === undefined ? undefined : childrenOf(owner, list(names)),
  };
}

function childrenOf(owner: Owner, names: readonly unknown[]): Map<string, Trace> {
  const children = new Map<string, Trace>();
  for (let at = 0; at < names.length; at += 2) children.set(names[at] as string, traceOf(owner, list(names[at + 1])));
  return children;
}

function seenOf(json: unknown): Trace['seen'] {
  if (json === 0) return undefined;
  if (typeof json === 'number') return { kind: 'absent', seq: json };
  const parts = list(json);
  const seq = parts[0] as number, content = parts[1] as number, version = parts[2] as string | 0, print = parts[3], shown = parts[4];
  return {
    kind: 'present',
    seq,
    contentSeq: content === 0 ? seq : content === -1 ? undefined : content,
    version: version === 0 ? undefined : VERSION_PREFIX + version as Version,
    fingerprint: print === 0 ? undefined : printOf(list(print)),
    shown: shown === 1 ? 'whole' : shown === 0 ? NOTHING_SHOWN : rangesOf(list(shown)),
  };
}

function printOf(json: readonly unknown[]): FingerprintRecord {
  return {
    dev: json[0] as Inode, ino: json[1] as Inode, size: json[2] as number, mtime: json[3] as Nanoseconds,
    ctime: json[4] as Nanoseconds,
  };
}

function statOf(json: readonly unknown[]): StatLook {
  return {
    seq: json[5] as number, exists: json[0] as StatLook['exists'], ino: json[1] as Inode, size: json[2] as number,
    mtime: json[3] as Nanoseconds, ctime: json[4] as Nanoseconds,
  };
}

function linkOf(json: readonly unknown[]): LinkLook {
  const [seq, target] = json as [number, string];
  return { seq, target };
}

function rangesOf(json: readonly unknown[]): Shown {
  const ranges: [number, number][] = [];
  for (let at = 0; at < json.length; at += 2) ranges.push([json[at] as number, json[at + 1] as number]);
  return ranges;
}

function list(json: unknown): readonly unknown[] {
  if (!Array.isArray(json)) throw new TypeError('no list where a checkpoint of observations has one');
  return json;
}
