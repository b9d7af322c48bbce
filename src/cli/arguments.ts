import { readFileSync } from 'node:fs';

/**
 * The arguments with names that are no UTF-8 kept: node puts U+FFFD in the place of such bytes, the kernel still has them. They
 * come as `pathFromBytes` gives them.
 */
export async function exactArguments(args: readonly string[]): Promise<readonly string[]> {
  if (!args.some((each) => each.includes('\ufffd'))) return args;
  const given = argumentsOfProcess();
  if (given.length < args.length) return args;
  const { pathFromBytes } = await import('../index.ts');
  return given.slice(-args.length).map((bytes) => pathFromBytes(bytes));
}

/** The arguments of this process, node's own in front; none where there is no /proc. */
function argumentsOfProcess(): Buffer[] {
  let bytes: Buffer;
  try {
    bytes = readFileSync('/proc/self/cmdline');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return [];
  }
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(0, at);
    found.push(bytes.subarray(at, end < 0 ? bytes.length : end));
    at = (end < 0 ? bytes.length : end) + 1;
  }
  return found;
}
