import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach } from 'vitest';
import { Overlay } from '../../src/index.ts';
import { openWorld } from '../../src/index/open.ts';
import type { Event, OverlayOptions } from '../../src/index.ts';
import { Refusal } from '../../src/core/refusal.ts';
import { Kernel } from '../../src/overlay/kernel.ts';
import type { System } from '../../src/overlay/system.ts';
import type { World } from '../../src/overlay/world.ts';
import type { PathName } from '../../src/core/path.ts';

const made: { overlays: Overlay[]; directories: string[]; machines: (() => void)[] } =
  { overlays: [], directories: [], machines: [] };

afterEach(() => {
  for (const overlay of made.overlays.splice(0)) overlay.closeSync();
  for (const close of made.machines.splice(0)) close();
  for (const directory of made.directories.splice(0)) fs.rmSync(directory, { recursive: true, force: true });
});

/** A new directory with these files, removed after the test. */
export function lowerWith(files: Readonly<Record<string, string | Buffer>>): string {
  const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-overlay-')));
  made.directories.push(scratch);
  const root = path.join(scratch, 'root');
  fs.mkdirSync(root);
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), content);
  }
  return root;
}

/** An overlay that is closed after the test. */
export function opened(options: OverlayOptions): Overlay {
  const overlay = Overlay.openSync(options);
  made.overlays.push(overlay);
  return overlay;
}

/** `op path` of every event, the control ones without path. */
export function told(overlay: Overlay): string[] {
  return [...overlay.events()].map((event: Event) => ('path' in event && event.path !== undefined ? `${event.op} ${event.path}` : event.op));
}

/** An overlay at its system calls, which no face has all of; closed after the test. */
export interface Machine {
  readonly world: World;
  readonly system: System;
  /** A name below the root as a path. */
  at(name: string): PathName;
  /** The events so far, whole. */
  events(): Event[];
  close(): void;
}

/** The system calls of an overlay over `root`, for one actor. */
export function machine(root: string, options: OverlayOptions = {}): Machine {
  const world = openWorld({ root, ...options }), system = new Kernel(world, 'main');
  let closed = false;
  const close = (): void => {
    if (closed) return;
    closed = true;
    for (const fd of [...world.descriptors.open()]) system.close(fd);
    world.session.close('main');
    world.lower.close();
  };
  made.machines.push(close);
  return { world, system, close, at: (name) => path.join(root, name) as PathName, events: () => [...world.session.events()] };
}

/** What a call is refused with, or `done`. */
export function verdict(call: () => unknown): string {
  try {
    call();
    return 'done';
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
}
