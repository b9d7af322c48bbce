/** The part of fs-monkey that the tests use; the package has no types. */
declare module 'fs-monkey' {
  /** Makes `require` of this process look for modules in `fs`. Cannot be taken back. */
  export function patchRequire(fs: object): void;
}
