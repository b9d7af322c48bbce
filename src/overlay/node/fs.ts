import * as fs from 'node:fs';
import type { System } from '../system.ts';
import { unixSeconds } from './arguments.ts';
import { contentCalls, type Flushing } from './contents.ts';
import { copies } from './cp.ts';
import { descriptorCalls } from './descriptors.ts';
import { Dir, directories } from './dir.ts';
import { globs, NODE_HAS_GLOB } from './glob.ts';
import { callbackOf, named, type Body, type Call } from './lift.ts';
import { listingCalls } from './listing.ts';
import { nameCalls } from './names.ts';
import { closeCall, existsCall, openAsBlobCall, orDescriptor, transferCalls } from './odd.ts';
import { handleCalls, promiseCalls } from './promises.ts';
import { removals } from './rm.ts';
import { Stats } from './stats.ts';
import { streamClasses, type StreamClasses } from './streams.ts';
import { fileWatches } from './watch-file.ts';
import { watches } from './watch.ts';

/** What `node:fs` is in this version of node. */
export type NodeFs = typeof fs;

/**
 * A `node:fs` over `system`: the same names, arguments, results and errors, in all its faces. Its methods may be
 * replaced by the user, as those of `node:fs` may; streams and flushes go through what stands there then.
 */
export function createNodeFs(system: System): NodeFs {
  const face: Record<string, unknown> = {};
  const descriptors = descriptorCalls(system);
  const contents = contentCalls(system, face as unknown as Flushing);
  const names = nameCalls(system);
  const { realpathNative, ...listings } = listingCalls(system);
  const calls: Record<string, Call> = { ...descriptors.calls, ...contents, ...names, ...listings };

  for (const [name, call] of Object.entries(calls)) {
    face[`${name}Sync`] = named(call.sync, `${name}Sync`, call.sync.length);
    face[name] = named(callbackOf(call), name, call.callback[1] + 1);
  }
  Object.assign(face, transferCalls(descriptors), {
    exists: existsCall(names.exists.sync),
    close: closeCall(descriptors.calls.close.sync),
    truncate: orDescriptor(face, 'truncate', 'ftruncate'),
    truncateSync: orDescriptor(face, 'truncateSync', 'ftruncateSync'),
    openAsBlob: openAsBlobCall(contents.readFile.sync),
    lchmod: undefined,
    lchmodSync: undefined,
    _toUnixTimestamp: (time: unknown, name = 'time') => unixSeconds(time, name, Date.now),
  });
  (face['realpathSync'] as { native?: Body }).native = named(realpathNative.sync, 'native', 2);
  (face['realpath'] as { native?: Body }).native = named(callbackOf(realpathNative), 'native', 3);

  const streams = streamClasses(face);
  const promises = promiseCalls(
    { ...calls, realpath: { ...realpathNative, promise: true } }, calls['open']?.sync as Body,
    handleCalls(descriptors, contents, streams),
  );
  const groups = [copies(system), removals(system, face), directories(system), watches(system), ...(NODE_HAS_GLOB ? [globs(system)] : [])];
  for (const { promises: later, ...others } of groups) {
    Object.assign(face, others);
    Object.assign(promises, later);
  }
  Object.assign(face, fileWatches(system), { Dir, Dirent: fs.Dirent, Stats });
  addStreams(face, streams);
  addConstants(face);
  Object.defineProperty(face, 'promises', { value: promises, configurable: true, enumerable: true });
  return face as unknown as NodeFs;
}

/** `fs.ReadStream` and its like can be replaced, and `createReadStream` makes what stands there then. */
function addStreams(face: Record<string, unknown>, streams: StreamClasses): void {
  Object.assign(face, {
    ReadStream: streams.ReadStream,
    WriteStream: streams.WriteStream,
    FileReadStream: streams.ReadStream,
    FileWriteStream: streams.WriteStream,
    createReadStream(path: unknown, options?: unknown) {
      return new (face['ReadStream'] as StreamClasses['ReadStream'])(path, options);
    },
    createWriteStream(path: unknown, options?: unknown) {
      return new (face['WriteStream'] as StreamClasses['WriteStream'])(path, options);
    },
  });
}

function addConstants(face: Record<string, unknown>): void {
  for (const name of ['F_OK', 'R_OK', 'W_OK', 'X_OK'] as const) {
    Object.defineProperty(face, name, { value: fs.constants[name], enumerable: true });
  }
  Object.defineProperty(face, 'constants', { value: fs.constants, enumerable: true });
}
