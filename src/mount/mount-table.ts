import { readFileSync } from 'node:fs';

/** A line of a process's mount table. */
export interface Mount {
  /** Of the file system, as `major:minor`: the same wherever it is mounted. */
  readonly device: string;
  readonly path: string;
  readonly type: string;
  readonly writable: boolean;
}

/** The mounts that a process sees, the later ones above the earlier. */
export function mountTable(process: number | 'self'): Mount[] {
  return readFileSync(`/proc/${process}/mountinfo`, 'utf8').split('\n').filter((line) => line !== '').map((line) => {
    // id, parent, device, what, where, options, optional fields, "-", type, source, options of the file system
    const [before, after] = line.split(' - ') as [string, string];
    const fields = before.split(' '), options = (fields[5] ?? '').split(',');
    const system = (after.split(' ')[2] ?? '').split(',');
    return {
      device: fields[2] ?? '', path: unescaped(fields[4] ?? ''), type: after.split(' ')[0] ?? '',
      writable: !options.includes('ro') && !system.includes('ro'),
    };
  });
}

function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  const bytes = Buffer.from(text, 'utf8').toString('latin1').replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
