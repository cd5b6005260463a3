/** Was anything lost: what was acknowledged, against what the store holds. */

export interface Acknowledged {
  /** The sender's number. */
  sender: number;
  cid: string;
  /** No two messages have the same. */
  text: string;
  seq: number;
  /** Answered at the first try: such messages of one sender keep the order in which they were sent. */
  first: boolean;
}

export interface Stored {
  cid: string;
  text: string | null;
  seq: number;
}

export interface Verdict {
  checked: number;
  /** Acknowledged and not stored, or stored under another seq. */
  missing: number;
  /** Stored more than once. */
  doubled: number;
  /** Stored before a message that its sender had sent earlier. */
  outOfOrder: number;
}

export function checkLedger(acknowledged: readonly Acknowledged[], stored: readonly Stored[]): Verdict {
  const found = new Map<string, Stored>();
  let doubled = 0;
  for (const message of stored) {
    if (message.text === null) continue;
    if (found.has(message.text)) doubled++;
    found.set(message.text, message);
  }
  let missing = 0;
  let outOfOrder = 0;
  const numberOf = (text: string): number => Number(text.slice(text.lastIndexOf('-') + 1));
  const bySender = Map.groupBy(acknowledged, (a) => a.sender);
  for (const messages of bySender.values()) {
    for (const { cid, text, seq } of messages) {
      const kept = found.get(text);
      if (kept?.cid !== cid || kept.seq !== seq) missing++;
    }
    const sent = messages.filter((m) => m.first).sort((a, b) => numberOf(a.text) - numberOf(b.text));
    for (let i = 1; i < sent.length; i++) if (sent[i]!.seq <= sent[i - 1]!.seq) outOfOrder++;
  }
  return { checked: acknowledged.length, missing, doubled, outOfOrder };
}
