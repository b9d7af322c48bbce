/**
 * Owner epochs: who may change a node in place. Every live overlay has one owner; a node that carries another one is
 * shared with a fork and is copied once before its first change. A fork is therefore one new owner, whatever the size.
 */
export class Owner {
  declare private readonly identity: undefined;
}
