/** Palimpsest: a copy-on-write overlay over a directory, and the log of all that was seen and done through it. */
export { Overlay, ActorView } from './index/overlay.ts';
export type { EventFilter } from './index/filter.ts';
export type { OverlayMount, RunOptions, RunResult } from './index/processes.ts';
export type { OverlayOptions } from './index/options.ts';
export { rulesOf, type Effect, type Rule } from './policy/rules.ts';
export type { Operation } from './overlay/ruling.ts';
export type { Change, ChangeKind } from './overlay/changes.ts';
export type { Event, EventBody, Op } from './core/event.ts';
export { fold, projection } from './core/fold.ts';
export { fromBytes as pathFromBytes, toBytes as pathToBytes } from './core/path.ts';
export { count, initialStatistics, type Statistics } from './core/statistics.ts';
export { LOG_SCHEMA } from './core/schema.ts';
export type { Observation, ReadSetRow } from './core/observation.ts';
export type { Version } from './core/version.ts';
export { CorruptLogError, LockedSessionError, SessionError } from './store/fault.ts';
export { lowerOf } from './index/open.ts';
export { SessionLog, eventJson } from './index/session-log.ts';
export { glance, removeSession, type SessionGlance } from './store/glance.ts';
