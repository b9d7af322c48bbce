import fs from 'node:fs';
import { buildTree } from './tree.ts';
import type { Program } from './program.ts';

export type NodeFs = typeof fs;

export const ACTORS = ['ann', 'bob'] as const;

/** Where a program can be played: something `node:fs`-shaped for each actor over a tree at `root`. */
export interface World {
  readonly root: string;
  /** Whether descriptors may be left to `reopen` to close. */
  readonly leaksDescriptors: boolean;
  fs(actor: 0 | 1): NodeFs;
  /** Ends the session and takes it up again. All descriptors are gone. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

/** The oracle: a real directory, made anew, through the real `node:fs`. */
export function realWorld(root: string, lower: Program['lower'], face: NodeFs = fs): World {
  buildTree(root, lower);
  return {
    root,
    leaksDescriptors: false,
    fs: () => face,
    reopen: async () => undefined,
    close: async () => undefined,
  };
}
