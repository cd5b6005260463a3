/**
 * A trie in flat arrays: children are found in one table by node and symbol. Node 0 is the root, and a node's number is
 * greater than its parent's. A node takes about 30 bytes.
 */
export class Trie {
  /** A number of at most 8 bits for each node, whatever the user of the trie means by it. */
  readonly marks: Uint8Array;
  readonly #parents: Int32Array;
  readonly #symbols: Int32Array;
  readonly #depths: Uint8Array;
  readonly #table: Int32Array;
  #fails: Int32Array | undefined;
  #size = 1;

  /** @param most nodes beside the root. */
  constructor(most: number) {
    this.marks = new Uint8Array(most + 1);
    this.#parents = new Int32Array(most + 1);
    this.#symbols = new Int32Array(most + 1);
    this.#depths = new Uint8Array(most + 1);
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(2 * (most + 1))));
  }

  get empty(): boolean {
    return this.#size === 1;
  }

  depth(node: number): number {
    return this.#depths[node]!;
  }

  /** The place of the child in the table, or that where it would stand. */
  #place(node: number, symbol: number): number {
    const last = this.#table.length - 1;
    let hash = Math.imul(Math.imul(node, 0x9e3779b1) ^ symbol, 0x85ebca6b);
    hash ^= hash >>> 15;
    let at = hash & last;
    for (;;) {
      const found = this.#table[at]!;
      if (found === 0 || (this.#parents[found] === node && this.#symbols[found] === symbol)) return at;
      at = (at + 1) & last;
    }
  }

  /** The child of the node by this symbol; 0 if there is none. */
  child(node: number, symbol: number): number {
    return this.#table[this.#place(node, symbol)]!;
  }

  add(node: number, symbol: number): number {
    const at = this.#place(node, symbol);
    if (this.#table[at] !== 0) return this.#table[at]!;
    const made = this.#size++;
    this.#parents[made] = node;
    this.#symbols[made] = symbol;
    this.#depths[made] = this.#depths[node]! + 1;
    return (this.#table[at] = made);
  }

  /**
   * Makes `next` work. Calls `meet` with each node, shorter ones first, and the node of the longest end of it that is in the
   * trie too; yields after every node.
   */
  *link(meet: (node: number, fail: number) => void): Generator<void> {
    const order = this.#byDepth();
    const fails = (this.#fails = new Int32Array(this.#size));
    for (const node of order) {
      const parent = this.#parents[node]!;
      const fail = parent === 0 ? 0 : this.next(fails[parent]!, this.#symbols[node]!);
      fails[node] = fail;
      meet(node, fail);
      yield;
    }
  }

  #byDepth(): Int32Array {
    const starts = new Int32Array(257);
    for (let node = 1; node < this.#size; node++) starts[this.#depths[node]! + 1]!++;
    for (let depth = 1; depth < starts.length; depth++) starts[depth]! += starts[depth - 1]!;
    const order = new Int32Array(this.#size - 1);
    for (let node = 1; node < this.#size; node++) order[starts[this.#depths[node]!]!++] = node;
    return order;
  }

  /** The longest end of what was read up to the node, and the symbol, that is in the trie; 0 if none is. */
  next(node: number, symbol: number): number {
    for (let from = node; ; from = this.#fails![from]!) {
      const found = this.child(from, symbol);
      if (found !== 0 || from === 0) return found;
    }
  }
}
