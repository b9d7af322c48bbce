import { closeSync, constants, openSync } from 'node:fs';

const DEVICE = '/dev/fuse';

/** What this machine lacks for a mount or a run, in words for its user: what is missing, then how to get it. */
export class MachineError extends Error {
  override readonly name = 'MachineError';
}

/**
 * A descriptor of `/dev/fuse`, not yet bound to a mount; closed in children. It must be opened in the user namespace in
 * which it is mounted. Throws `MachineError` where there is no such device or it may not be opened.
 */
export function openDevice(): number {
  try {
    return openSync(DEVICE, constants.O_RDWR);
  } catch (error) {
    throw new MachineError(reasonOf((error as NodeJS.ErrnoException).code), { cause: error });
  }
}

/** Why the device cannot be opened, or nothing where it can. */
export function deviceFault(): string | undefined {
  try {
    closeSync(openDevice());
    return undefined;
  } catch (error) {
    if (error instanceof MachineError) return error.message;
    throw error;
  }
}

function reasonOf(code: string | undefined): string {
  switch (code) {
    case 'ENOENT':
      return `${DEVICE} is not there: load the kernel's module (modprobe fuse), or give the container the device (--device ${DEVICE})`;
    case 'ENODEV':
    case 'ENXIO':
      return `${DEVICE} is there, but the kernel has no FUSE behind it: load the module (modprobe fuse)`;
    case 'EACCES':
      return `${DEVICE} may not be opened by user ${process.getuid?.()}: as root, chmod 666 ${DEVICE} (most systems ship it so)`;
    case 'EPERM':
      return `${DEVICE} is kept from this container: start it with --device ${DEVICE}`;
    default:
      return `${DEVICE} cannot be opened (${code ?? 'unknown error'})`;
  }
}
