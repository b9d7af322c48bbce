import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach } from 'vitest';
import { Overlay } from '../../src/index.ts';
import type { Event, OverlayOptions } from '../../src/index.ts';

const made: { overlays: Overlay[]; directories: string[] } = { overlays: [], directories: [] };

afterEach(() => {
  for (const overlay of made.overlays.splice(0)) overlay.closeSync();
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
