/** The paths of the routes and their methods: tells a wrong method from a wrong path (RFC 9110, 15.5.6). */
export class KnownPaths {
  readonly #paths = new Map<string, { pattern: RegExp; methods: Set<string> }>();

  /** @param url as the router takes it: `:name` stands for a segment, `*` for the rest. */
  add(url: string, methods: string | string[]): void {
    const known = this.#paths.get(url) ?? { pattern: patternOf(url), methods: new Set(['OPTIONS']) };
    for (const method of [methods].flat()) known.methods.add(method);
    this.#paths.set(url, known);
  }

  /** The header of an answer that refuses the method; empty if there is no such path. */
  allow(path: string): { Allow?: string } {
    const methods = new Set<string>();
    for (const { pattern, methods: known } of this.#paths.values())
      if (pattern.test(path)) for (const method of known) methods.add(method);
    return methods.size === 0 ? {} : { Allow: [...methods].sort().join(', ') };
  }
}

function patternOf(url: string): RegExp {
  const segments = url.split('/').map((segment) => {
    if (segment === '*') return '.*';
    return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment);
  });
  return new RegExp(`^${segments.join('/')}$`);
}
