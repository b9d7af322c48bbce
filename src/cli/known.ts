import type { Overlay } from '../index.ts';
import { fileName } from './path.ts';
import { isBelow } from './state-directory.ts';
import { quoted } from './text.ts';

/** Throws for a path, of those given and what they are in the tree, that no overlay has, nor anything that changed in one had a name for. */
export function demandKnown(paths: readonly string[], chosen: readonly string[], overlays: readonly Overlay[]): void {
  const absent = chosen.filter((path) => !overlays.some((overlay) => isThere(overlay, path)));
  const changes = absent.length === 0 ? [] : overlays.flatMap((overlay) => overlay.changes());
  const unknown = absent.find((path) => !changes.some((row) =>
    [row.path, ...(row.from === undefined ? [] : [row.from])].some((name) => isBelow(name, path) || isBelow(path, name))));
  if (unknown !== undefined) throw new Error(`${quoted(paths[chosen.indexOf(unknown)] as string)}: no such path, neither in the session nor in the directory beneath`);
}

function isThere({ fs, mountPoint }: Overlay, path: string): boolean {
  try {
    return fs.lstatSync(fileName(mountPoint, path), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // Below what is a file here, and was a directory.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw error;
  }
}
