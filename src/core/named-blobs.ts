import type { Event } from './event.ts';
import type { Version } from './version.ts';

/** The digests of all blobs that an event names. Those that hold the record of a commit name others in turn. */
export function* blobsOf(event: Event): Generator<Version> {
  if ('blob' in event && event.blob !== undefined) yield event.blob;
  for (const { blob, extents } of event.kept ?? []) {
    if (blob !== undefined) yield blob;
    for (const { blob: piece } of extents ?? []) if (piece !== undefined) yield piece;
  }
  if (event.op === 'commit') for (const digest of event.record ?? []) yield digest as Version;
  if ('extents' in event && event.extents !== undefined) for (const { blob } of event.extents) if (blob !== undefined) yield blob;
}
