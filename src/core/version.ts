/** Versions: `sha256:…` of content. Equal bytes are equal versions, whoever wrote them and when. */
declare const brand: unique symbol;

/** `sha256:` and 64 lower-case hex digits: a file's content, or a directory's sorted list of (name, type). */
export type Version = string & { readonly [brand]: 'Version' };

/** Whether `text` has the form of a version. */
export function isVersion(text: unknown): text is Version {
  return typeof text === 'string' && /^sha256:[0-9a-f]{64}$/.test(text);
}
