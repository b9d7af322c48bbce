/** What a shell that is no node:fs builds on: the overlay's own calls, and the words they are made of. */
export { sameContent, Served, type Caller, type Found } from '../overlay/served.ts';
export { type System, type SystemEntry } from '../overlay/system.ts';
export type { Attr, Fingerprint } from '../core/attr.ts';
export type { Version } from '../core/version.ts';
export { typeBits } from '../core/attr.ts';
export type { ProcessInfo } from '../core/event.ts';
export { byteLength, fromBytes, toBytes, type PathName, type TreePath } from '../core/path.ts';
export { unreachable } from '../core/unreachable.ts';
export { Refusal } from '../core/refusal.ts';
export { hunksOf } from '../replay/hunk.ts';
