import { accessSync, constants } from 'node:fs';
import { MachineError } from './device.ts';

/** The programs that a mount or a run calls, and the package each is in. */
const PACKAGES = {
  sh: 'dash or any POSIX shell', env: 'coreutils 8.31 or later', cat: 'coreutils', mount: 'util-linux (or mount)', umount: 'util-linux (or mount)',
  unshare: 'util-linux 2.36 or later', nsenter: 'util-linux 2.36 or later', setpriv: 'util-linux 2.36 or later', ip: 'iproute2',
  getfattr: 'attr', git: 'git',
} as const;

export type Tool = keyof typeof PACKAGES;

/** Where they are looked for: never in the caller's PATH, which may lead into a root. */
export const TOOL_PATH = '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin';

const known = new Map<Tool, string>();

/** The absolute path of a program. Throws `MachineError` naming the package where it is not installed. */
export function toolPath(tool: Tool): string {
  const path = known.get(tool) ?? lookUp(tool);
  if (path === undefined) throw new MachineError(`${tool} is not installed: it comes with ${PACKAGES[tool]}`);
  known.set(tool, path);
  return path;
}

function lookUp(tool: Tool): string | undefined {
  return TOOL_PATH.split(':').map((directory) => `${directory}/${tool}`).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  });
}
