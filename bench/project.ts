import fs from 'node:fs';
import { dirname, join } from 'node:path';

/** The directory of this project, from the sources as from the compiled benchmark (which lies deeper). */
export const PROJECT = projectAbove(import.meta.dirname);

function projectAbove(directory: string): string {
  for (let at = directory; at !== dirname(at); at = dirname(at)) {
    if (fs.existsSync(join(at, 'package-lock.json')) && fs.existsSync(join(at, 'src/core'))) return at;
  }
  throw new Error(`no project above ${directory}`);
}
