import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Overlay, type FsError, type OverlayOptions } from '../../src/index.ts';

/** An overlay over a fresh lower, for tests of what may be changed. */
export interface Ground {
  readonly root: string;
  readonly overlay: Overlay;
  /** Changes the lower behind the overlay's back. */
  outside(name: string, content: string | Buffer): void;
  at(name: string): string;
  text(name: string): string;
}

/** Does `body` over a lower that holds `tree`; in the end all is closed and gone. */
export async function withGround(
  tree: Readonly<Record<string, string | Buffer>>, body: (ground: Ground) => void | Promise<void>, options: OverlayOptions = {},
): Promise<void> {
  const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-policy-'))), root = path.join(scratch, 'root');
  fs.mkdirSync(root);
  const outside = (name: string, content: string | Buffer): void => {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), content);
  };
  for (const [name, content] of Object.entries(tree)) outside(name, content);
  const overlay = Overlay.openSync({ root, ...options });
  try {
    await body({
      root, overlay, outside, at: (name) => path.join(root, name),
      text: (name) => overlay.as('witness').fs.readFileSync(path.join(root, name), 'utf8'),
    });
  } finally {
    await overlay.close();
    fs.rmSync(scratch, { recursive: true });
  }
}

/** What `act` throws, as code and message; `undefined` where it throws nothing. */
export function refusal(act: () => unknown): { code: unknown; message: string } | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    const { code, message } = error as FsError;
    return { code, message };
  }
}
