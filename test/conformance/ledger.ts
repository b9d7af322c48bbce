import { lstatSync, readdirSync, readFileSync } from 'node:fs';

/**
 * What in `directory` is not as the ledger of subject/filled.cjs says, one line each. The ledger has a line for all that was
 * made in the directory, hard links anew; the last one for a name counts. Times of directories are not in it.
 */
export function differences(directory: string, ledger: string): string[] {
  const noted = new Map<string, string>();
  const text = lstatSync(ledger, { throwIfNoEntry: false }) === undefined ? '' : readFileSync(ledger, 'utf8');
  for (const line of text.split('\n').slice(0, -1)) {
    const [name, keys] = JSON.parse(line) as [string, string];
    noted.set(name, keys);
  }
  const found: string[] = [];
  const visit = (parent: string): void => {
    for (const name of readdirSync(Buffer.from(parent, 'latin1'), { encoding: 'latin1' })) {
      const path = `${parent}/${name}`;
      const { mode, ino, size, mtimeNs, ctimeNs } = lstatSync(Buffer.from(path, 'latin1'), { bigint: true });
      const isDirectory = (mode & 0o170000n) === 0o040000n;
      const keys = (isDirectory ? [mode, ino] : [mode, ino, size, mtimeNs, ctimeNs]).join(' ');
      if (!noted.has(path)) found.push(`appeared: ${path}`);
      else if (noted.get(path) !== keys) found.push(`changed: ${path}, ${noted.get(path)} to ${keys}`);
      noted.delete(path);
      if (isDirectory) visit(path);
    }
  };
  visit(directory);
  return [...found, ...[...noted.keys()].map((path) => `gone: ${path}`)];
}
