/** The errno name of an error that the system gave, `''` for anything else. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/** Whether the error says that a name, or a directory above it, is gone or has become something else. */
export function isGone(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP';
}
