import type { Command } from 'commander';
import type { Overlay } from '../index.ts';
import { lookingAt } from './failure.ts';
import { manual } from './manual.ts';
import { withMoment, withSession, type TreeOption } from './options.ts';
import { out } from './output.ts';
import { fileName, placesOf, treePath } from './path.ts';
import { withTree } from './reading.ts';

/** Bytes that are read and written at a time: a file of any size takes no more memory. */
const STEP_BYTES = 1024 * 1024;

/** `palimpsest cat`. */
export function cat(command: Command): void {
  manual(command, {
    description: 'Prints the content of a file as the session has it: changed or as it is beneath. Reading it this way is not recorded.',
    examples: [
      ['palimpsest cat src/index.js', 'the file as it is now in the newest session'],
      ["palimpsest cat --at 'turn 3' src/index.js", 'as it was at a mark, or after an event'],
      ['palimpsest cat src/index.js | diff src/index.js -', 'what became of it, for any other tool'],
    ],
  });
  withMoment(withSession(command)).argument('<path>', 'relative to the working directory if that is below the root, else to the root; or absolute');
  command.action((path: string, options: TreeOption) => withTree(options, (overlay, { header }) => {
    const name = fileName(overlay.mountPoint, treePath(path, placesOf(header)));
    lookingAt(path, () => copyOut(overlay, name));
  }));
}

function copyOut({ fs }: Overlay, name: string | Buffer): void {
  const fd = fs.openSync(name, 'r');
  try {
    for (;;) {
      const bytes = Buffer.allocUnsafe(STEP_BYTES), length = fs.readSync(fd, bytes);
      if (length === 0) return;
      out.write(bytes.subarray(0, length));
    }
  } finally {
    fs.closeSync(fd);
  }
}
