import type { ExtentMap } from './extents.ts';
import type { Version } from './version.ts';

/**
 * A file's content is a reference: the lower file itself, a blob by digest, bytes still in memory, or a map of extents
 * over all of these. Only `draft` bytes ever change, and only while the event that wrote them is unpublished.
 */
export type Content =
  | { readonly kind: 'lower' }
  | { readonly kind: 'blob'; readonly digest: Version; readonly size: number }
  | Draft
  | { readonly kind: 'extents'; readonly map: ExtentMap };

/** `bytes` may be longer than `size`: room to grow. */
export interface Draft {
  readonly kind: 'draft';
  bytes: Uint8Array;
  size: number;
}

export const LOWER_CONTENT: Content = { kind: 'lower' };
