interface Kept<T> {
  version: number;
  value: Promise<T>;
  /** It has been read, or is being read. */
  begun: boolean;
}

/**
 * Reads something of an environment once for each version of it, and keeps it for the environments used last. One at a
 * time is read for an environment: of versions that come meanwhile the last.
 * @param most how many environments.
 * @param read gets what the version before was, if it is known.
 */
export function createKeptVersions<E extends { no: number }, T>(
  most: number,
  read: (env: E, before: T | undefined) => Promise<T>,
): (env: E, version: number) => Promise<T> {
  const kept = new Map<number, Kept<T>>();

  function begin(env: E, version: number, before: Kept<T> | undefined): Kept<T> {
    const made: Kept<T> = { version, begun: false, value: later() };
    async function later(): Promise<T> {
      const known = await before?.value.catch(() => undefined);
      made.begun = true;
      return read(env, known);
    }
    // What could not be read is tried again by the next message.
    made.value.catch(() => kept.get(env.no) === made && kept.delete(env.no));
    return made;
  }

  return (env, version) => {
    let found = kept.get(env.no);
    // A session may know an older version for a moment. What was read last is newer, and stays.
    if (!found || (found.version < version && found.begun)) found = begin(env, version, found);
    found.version = Math.max(found.version, version);
    kept.delete(env.no);
    kept.set(env.no, found);
    if (kept.size > most) kept.delete(kept.keys().next().value!);
    return found.value;
  };
}
