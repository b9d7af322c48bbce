import { toBytes, fromBytes } from '../../src/core/path.ts';
import { contentOf, rootless, statsOf } from './outcome.ts';
import type { AnyStats, Told } from './outcome.ts';
import type { NodeFs } from './world.ts';

/** Everything that can be seen of a tree through a face, one line an entry, and which entries are one file. */
export function census(
  face: NodeFs, told: Told, descriptors: Iterable<{ slot: number; stats: AnyStats }> = [],
): string[] {
  const lines: string[] = [];
  const groups = new Map<string, string[]>();
  const join = (stats: AnyStats, name: string): void => {
    const key = `${stats.dev}:${stats.ino}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [name]);
    else group.push(name);
  };
  const visit = (name: string): void => {
    try {
      look(name);
    } catch (error) {
      // What this user may not see: both worlds have to hide the same.
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
      lines.push(`${name} EACCES`);
    }
  };
  const look = (name: string): void => {
    const host = Buffer.from(toBytes(name === '' ? told.root : `${told.root}/${name}`));
    const stats = face.lstatSync(host, { bigint: true });
    const fields = JSON.stringify(statsOf(stats, told));
    join(stats, name);
    if (stats.isDirectory()) {
      lines.push(`${name}/ ${fields}`);
      const names = face.readdirSync(host, { encoding: 'buffer' }).map((each) => fromBytes(each)).sort();
      for (const child of names) visit(name === '' ? child : `${name}/${child}`);
    } else if (stats.isSymbolicLink()) {
      lines.push(`${name} -> ${rootless(fromBytes(face.readlinkSync(host, { encoding: 'buffer' })), told)} ${fields}`);
    } else if (stats.isFile()) {
      lines.push(`${name} ${fields} ${contentOf(face.readFileSync(host))}`);
    } else {
      lines.push(`${name} ${fields}`);
    }
  };
  visit('');
  for (const { slot, stats } of descriptors) {
    lines.push(`slot ${slot} ${JSON.stringify(statsOf(stats, told))}`);
    join(stats, `slot ${slot}`);
  }
  for (const group of groups.values()) if (group.length > 1) lines.push(`one file: ${group.join(', ')}`);
  return lines;
}
