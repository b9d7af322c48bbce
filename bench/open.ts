import fs from 'node:fs';
import { nodeSubject } from './node-subject.ts';
import { openOurs } from './ours.ts';
import { loadPeer, openPeer } from './peers.ts';
import type { Subject, SubjectName } from './subject.ts';

/** Opens a subject over the tree in `root`; ours on disk makes its session in `session`. */
export async function openSubject(name: SubjectName, root: string, session: string): Promise<Subject> {
  switch (name) {
    case 'raw':
    case 'raw again': return nodeSubject(name, fs, root);
    case 'ours': return openOurs(root);
    case 'ours on disk': return openOurs(root, session);
    default: return openPeer(name, root);
  }
}

/** Loads what `openSubject` would load first. */
export async function loadSubject(name: SubjectName): Promise<void> {
  if (name !== 'raw' && name !== 'raw again' && name !== 'ours' && name !== 'ours on disk') await loadPeer(name);
}
