import { limits, voteKeys } from '@parley/protocol';
import { guards } from '../../../log/sql/guards.ts';
import { flags } from '../../sql/flags.ts';

/** How many changes are kept for the next event: one more than it shows, so that it knows whether there were more. */
const kept = limits.reactionChanges + 1;

/** SQL of whether a key is that of a vote. */
const isVote = (key: string): string => `(${key} LIKE '${voteKeys}%')`;

/** SQL of a list with the user p_usr, or of none. */
const named = `CASE WHEN p_usr IS NULL THEN '[]'::jsonb ELSE jsonb_build_array(p_usr) END`;

/** SQL of the place of a row, in the order of its index. */
const at = (alias: string, place: string): string =>
  `${alias}.conv = ${place}.conv AND ${alias}.message = ${place}.message AND ${alias}.env = ${place}.env`;

/** SQL of a member of the place's conversation who was not erased. */
const member = (place: string, user: string): string =>
  `members b JOIN users u ON u.no = b.usr AND u.env = b.env
        WHERE b.conv = ${place}.conv AND b.usr = ${user} AND b.env = ${place}.env AND u.erased_at IS NULL`;

export const sql = `
-- The counts as callers see them.
CREATE OR REPLACE FUNCTION shown_reactions(p_env int, p_counts text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT coalesce(json_agg(json_build_object('emoji', c.entry ->> 0, 'count', (c.entry ->> 1)::bigint, 'userIds', (
    SELECT coalesce(json_agg(u.id ORDER BY n.ord), '[]') FROM jsonb_array_elements_text(c.entry -> 2) WITH ORDINALITY n(no, ord)
    CROSS JOIN LATERAL (SELECT id FROM users WHERE no = n.no::bigint AND env = p_env LIMIT 1) u
  )) ORDER BY c.ord), '[]') FROM jsonb_array_elements(p_counts::jsonb) WITH ORDINALITY c(entry, ord)
$$;

CREATE OR REPLACE FUNCTION newest_reactors(p_env int, p_conv bigint, p_message bigint, p_emoji text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg(x.usr ORDER BY x.at DESC, x.usr DESC), '[]') FROM (
    SELECT r.usr, r.at FROM reactions r WHERE r.conv = p_conv AND r.message = p_message AND r.emoji = p_emoji AND r.env = p_env
    ORDER BY r.at DESC, r.usr DESC LIMIT ${limits.reactorsShown}) x
$$;

-- The counts after these reactions of a user were removed from the table.
CREATE OR REPLACE FUNCTION less_reactions(p_env int, p_conv bigint, p_message bigint, p_counts jsonb, p_usr bigint, p_gone text[]) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_agg(CASE WHEN c.entry ->> 0 <> ALL (p_gone) THEN c.entry ELSE jsonb_build_array(c.entry ->> 0, (c.entry ->> 1)::bigint - 1,
      CASE WHEN c.entry -> 2 @> to_jsonb(p_usr) THEN newest_reactors(p_env, p_conv, p_message, c.entry ->> 0) ELSE c.entry -> 2 END) END ORDER BY c.ord)
    FILTER (WHERE c.entry ->> 0 <> ALL (p_gone) OR (c.entry ->> 1)::bigint > 1), '[]')
  FROM jsonb_array_elements(p_counts) WITH ORDINALITY c(entry, ord)
$$;

-- The counts after a user reacted. A user who must not be named is null.
CREATE OR REPLACE FUNCTION more_reactions(p_counts jsonb, p_usr bigint, p_emoji text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN coalesce(bool_or(c.entry ->> 0 = p_emoji), false)
    THEN jsonb_agg(CASE WHEN c.entry ->> 0 <> p_emoji THEN c.entry ELSE
      jsonb_build_array(p_emoji, (c.entry ->> 1)::bigint + 1, (${named} || (c.entry -> 2)) - ${limits.reactorsShown}) END ORDER BY c.ord)
    ELSE p_counts || jsonb_build_array(jsonb_build_array(p_emoji, 1, ${named})) END
  FROM jsonb_array_elements(p_counts) WITH ORDINALITY c(entry, ord)
$$;

-- The changes for the next event, with those of a user added.
CREATE OR REPLACE FUNCTION more_changes(p_changes jsonb, p_usr bigint, p_gone text[], p_come text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_agg(x.change ORDER BY x.ord) FROM (
    SELECT a.change, a.ord FROM jsonb_array_elements(p_changes
      || (SELECT coalesce(jsonb_agg(jsonb_build_array(p_usr, g, false)), '[]') FROM unnest(p_gone) g)
      || CASE WHEN p_come IS NULL THEN '[]'::jsonb ELSE jsonb_build_array(jsonb_build_array(p_usr, p_come, true)) END
    ) WITH ORDINALITY a(change, ord) ORDER BY a.ord DESC LIMIT ${kept}) x
$$;

-- The group commit of reactions: sets and removes many at once, message by message. It takes no lock of a conversation, except
-- for the first reaction of a conversation's life, which sets its flag. The row of the message's counts is the lock: what another
-- transaction has locked is 'blocked', and nothing waits for it; with p_wait_ms it is waited for that many milliseconds. Who
-- deletes a message changes that row too, so a reaction is either gone with the message or finds it deleted; one that slips in
-- before there was a row is found by the event that it leaves (tell.ts).
-- A key such as 'poll:1,3' is a vote: the options that the user wants, instead of those before. Who closes a poll changes the
-- row of the counts too, so a vote is either counted before or finds the poll closed.
CREATE OR REPLACE FUNCTION set_reactions(
  p_env int[], p_conv bigint[], p_message bigint[], p_usr bigint[], p_own boolean[], p_emoji text[], p_on boolean[], p_replace boolean[],
  p_wait_ms int
) RETURNS TABLE (ord int, status text, changed boolean, revision bigint, total bigint, counts json, own text[]) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  g record; -- a message, and the items that are about it
  m record;
  r message_reactions;
  i int;
  verdict text;
  verdicts text[];
  moved boolean[];
  people bigint[];
  silences timestamptz[]; -- until when each of the people is silenced
  silence timestamptz;
  wants boolean; -- a member wants to add something, and may
  closed boolean; -- users may add nothing: one of the two blocks the other
  bare boolean; -- the rule of the group: users react to nothing
  poll jsonb; -- that of the message, where somebody votes
  voted boolean;
  secret boolean; -- nobody may be told who voted
  had text[];
  wanted text[];
  gone text[];
  come text[];
  one text;
  entries jsonb;
  noted jsonb;
  n bigint;
  revised bigint;
  shown json;
  added bigint[] := '{}'; -- the environments of new reactions, one by one
BEGIN
  PERFORM set_config('lock_timeout', coalesce(p_wait_ms, 1000)::text, true);
  IF p_wait_ms IS NOT NULL THEN
    PERFORM 1 FROM (SELECT DISTINCT u.env, u.conv FROM unnest(p_env, p_conv) u(env, conv) ORDER BY 2) w, LATERAL (
      SELECT 1 FROM conversations c WHERE c.no = w.conv AND c.env = w.env AND c.flags & ${flags.reactions} = 0 FOR NO KEY UPDATE) c;
    PERFORM 1 FROM (SELECT DISTINCT u.env, u.conv, u.message FROM unnest(p_env, p_conv, p_message) u(env, conv, message) ORDER BY 2, 3) w, LATERAL (
      SELECT 1 FROM message_reactions x WHERE ${at('x', 'w')} FOR NO KEY UPDATE) x;
    PERFORM 1 FROM (SELECT DISTINCT u.env, u.conv, u.usr FROM unnest(p_env, p_conv, p_usr) u(env, conv, usr) ORDER BY 2, 3) w, LATERAL (
      SELECT 1 FROM ${member('w', 'w.usr')} FOR KEY SHARE OF b, u) x;
  END IF;
  -- In the order of messages: a new row waits for another transaction that makes the same one.
  FOR g IN
    SELECT u.env, u.conv, u.message, array_agg(u.ord::int ORDER BY u.ord) AS items
    FROM unnest(p_env, p_conv, p_message) WITH ORDINALITY u(env, conv, message, ord) GROUP BY 1, 2, 3 ORDER BY 2, 3
  LOOP
    verdict := NULL;
    r := NULL;
    -- The locks keep a member from being removed or erased before the commit: an erasure changes users.id, which is a key. A block locks its
    -- two members for update once it has set the flag: it waits for reactions that have not seen the flag, and all others see it, because
    -- they read it after this. A silence locks the row that it changes for update, so it waits in the same way.
    SELECT coalesce(array_agg(k.usr), '{}'), array_agg(k.silenced) INTO people, silences
      FROM (SELECT DISTINCT p_usr[o] AS usr FROM unnest(g.items) o ORDER BY 1) w, LATERAL (
        SELECT b.usr, greatest(b.silenced_until, u.silenced_until) AS silenced FROM ${member('g', 'w.usr')} FOR KEY SHARE OF b, u SKIP LOCKED) k;
    SELECT x.id IS NULL AS cold, x.deleted_at IS NOT NULL OR x.hard AS gone, c.flags INTO m FROM conversations c, LATERAL (
      SELECT * FROM messages WHERE conv = g.conv AND seq = g.message AND env = g.env LIMIT 1
    ) x WHERE c.no = g.conv AND c.env = g.env AND c.deleted_at IS NULL;
    IF NOT FOUND OR m.gone THEN verdict := 'not_found'; ELSIF m.cold THEN verdict := 'cold'; END IF;
    closed := coalesce(m.flags & ${guards.blockedPair} <> 0, false);
    bare := coalesce(m.flags & ${flags.noReactions} <> 0, false);
    wants := EXISTS (SELECT 1 FROM unnest(g.items) o WHERE p_on[o] AND p_usr[o] = ANY (people)
      AND NOT (p_own[o] AND (closed OR bare AND NOT ${isVote('p_emoji[o]')} OR coalesce(silences[array_position(people, p_usr[o])] > clock_timestamp(), false))));
    IF verdict IS NULL AND wants AND m.flags & ${flags.reactions} = 0 THEN
      PERFORM 1 FROM conversations c WHERE c.no = g.conv AND c.env = g.env FOR NO KEY UPDATE SKIP LOCKED;
      IF FOUND THEN
        UPDATE conversations c SET flags = c.flags | ${flags.reactions} WHERE c.no = g.conv AND c.env = g.env;
      ELSE
        verdict := 'blocked';
      END IF;
    END IF;
    IF verdict IS NULL THEN
      IF wants AND NOT EXISTS (SELECT 1 FROM message_reactions x WHERE ${at('x', 'g')}) THEN
        -- Nobody sees a new row before the commit, so this lock keeps the message from leaving the store (cool_messages).
        PERFORM 1 FROM messages x WHERE x.conv = g.conv AND x.seq = g.message AND x.env = g.env FOR SHARE SKIP LOCKED;
        IF FOUND THEN
          INSERT INTO message_reactions (env, conv, message) VALUES (g.env, g.conv, g.message) ON CONFLICT DO NOTHING;
        ELSE
          verdict := 'blocked';
        END IF;
      END IF;
      SELECT x.* INTO r FROM message_reactions x WHERE ${at('x', 'g')} FOR NO KEY UPDATE SKIP LOCKED;
      IF NOT FOUND AND EXISTS (SELECT 1 FROM message_reactions x WHERE ${at('x', 'g')}) THEN verdict := 'blocked'; END IF;
      -- It may have been deleted, or have gone to the customer's database, before the row was locked.
      verdict := coalesce((SELECT CASE WHEN x.hard OR x.deleted_at IS NOT NULL THEN 'not_found' WHEN x.id IS NULL THEN 'cold' END
        FROM messages x WHERE x.conv = g.conv AND x.seq = g.message AND x.env = g.env LIMIT 1), verdict);
    END IF;

    poll := NULL;
    IF EXISTS (SELECT 1 FROM unnest(g.items) o WHERE ${isVote('p_emoji[o]')}) THEN
      poll := (SELECT x.extras::jsonb -> 'poll' FROM messages x WHERE x.conv = g.conv AND x.seq = g.message AND x.env = g.env LIMIT 1);
    END IF;
    entries := coalesce(r.counts, '[]')::jsonb;
    noted := coalesce(r.changes, '[]')::jsonb;
    n := coalesce(r.total, 0);
    revised := coalesce(r.revision, 0);
    verdicts := array_fill(coalesce(verdict, 'ok'), ARRAY[cardinality(g.items)]);
    moved := array_fill(false, ARRAY[cardinality(g.items)]);
    FOR k IN 1 .. cardinality(g.items) LOOP
      EXIT WHEN verdict IS NOT NULL AND verdict <> 'cold';
      i := g.items[k];
      IF p_usr[i] <> ALL (people) THEN
        verdicts[k] := CASE WHEN EXISTS (SELECT 1 FROM ${member('g', 'p_usr[i]')}) THEN 'blocked' ELSE 'not_member' END;
        CONTINUE;
      END IF;
      IF closed AND p_own[i] AND p_on[i] THEN
        verdicts[k] := 'pair_blocked';
        CONTINUE;
      END IF;
      silence := silences[array_position(people, p_usr[i])];
      IF silence > clock_timestamp() AND p_own[i] AND p_on[i] THEN
        verdicts[k] := refused_until('restricted', silence, clock_timestamp());
        CONTINUE;
      END IF;
      IF bare AND p_own[i] AND p_on[i] AND NOT ${isVote('p_emoji[i]')} THEN
        verdicts[k] := 'reacting';
        CONTINUE;
      END IF;
      CONTINUE WHEN verdict IS NOT NULL;
      voted := ${isVote('p_emoji[i]')};
      secret := voted AND coalesce((poll ->> 'anonymous')::boolean, true);
      IF voted AND (poll IS NULL OR poll ? 'closedAt' OR coalesce((poll ->> 'closesAt')::timestamptz <= clock_timestamp(), false)) THEN
        verdicts[k] := 'closed';
        CONTINUE;
      END IF;
      had := ARRAY(SELECT x.emoji FROM reactions x WHERE x.conv = g.conv AND x.usr = p_usr[i] AND x.message = g.message AND x.env = g.env
        AND ${isVote('x.emoji')} = voted);
      wanted := CASE WHEN voted THEN ARRAY(SELECT '${voteKeys}' || o FROM unnest(string_to_array(substr(p_emoji[i], ${voteKeys.length + 1}), ',')) o)
        WHEN p_on[i] THEN ARRAY[p_emoji[i]] ELSE '{}' END;
      gone := ARRAY(SELECT e FROM unnest(had) e
        WHERE CASE WHEN voted OR p_on[i] AND p_replace[i] THEN e <> ALL (wanted) ELSE NOT p_on[i] AND e = p_emoji[i] END);
      come := ARRAY(SELECT e FROM unnest(wanted) e WHERE e <> ALL (had));
      CONTINUE WHEN cardinality(come) + cardinality(gone) = 0;
      IF NOT voted AND cardinality(come) > 0 AND ${limits.emojiPerMessage} <= (
        SELECT count(*) FILTER (WHERE e ->> 0 <> ALL (gone) OR (e ->> 1)::bigint > 1) + CASE WHEN bool_or(e ->> 0 = come[1]) THEN -1 ELSE 0 END
        FROM jsonb_array_elements(entries) e WHERE NOT ${isVote('e ->> 0')}
      ) THEN
        verdicts[k] := 'limit_reached';
        CONTINUE;
      END IF;
      IF cardinality(gone) > 0 THEN
        DELETE FROM reactions x WHERE x.conv = g.conv AND x.usr = p_usr[i] AND x.message = g.message AND x.env = g.env AND x.emoji = ANY (gone);
        entries := less_reactions(g.env, g.conv, g.message, entries, p_usr[i], gone);
      END IF;
      FOREACH one IN ARRAY come LOOP
        INSERT INTO reactions (env, conv, message, usr, emoji, at) VALUES (g.env, g.conv, g.message, p_usr[i], one, clock_timestamp());
        entries := more_reactions(entries, CASE WHEN NOT secret THEN p_usr[i] END, one);
        added := added || g.env::bigint;
      END LOOP;
      n := n + cardinality(come) - cardinality(gone);
      IF NOT secret THEN
        noted := more_changes(noted, p_usr[i], gone, come[1]);
        FOREACH one IN ARRAY come[2:] LOOP
          noted := more_changes(noted, p_usr[i], '{}', one);
        END LOOP;
      END IF;
      revised := revised + 1;
      moved[k] := true;
    END LOOP;

    IF revised > r.revision THEN
      UPDATE message_reactions x SET counts = entries::text, total = n, revision = revised, changes = noted::text, waiting = true,
          -- One that was left alone because it was in the customer's database is told soon.
          due_at = CASE WHEN x.waiting THEN least(x.due_at, clock_timestamp() + interval '10 s') ELSE greatest(x.due_at, clock_timestamp()) END
        WHERE ${at('x', 'g')};
    END IF;
    shown := CASE WHEN 'ok' = ANY (verdicts) THEN shown_reactions(g.env, entries::text) END;
    RETURN QUERY SELECT g.items[k], verdicts[k], moved[k], revised, n, CASE WHEN verdicts[k] = 'ok' THEN shown END,
        ARRAY(SELECT x.emoji FROM reactions x WHERE x.conv = g.conv AND x.usr = p_usr[g.items[k]] AND x.message = g.message AND x.env = g.env ORDER BY x.at, x.emoji)
      FROM generate_series(1, cardinality(g.items)) k;
  END LOOP;
  IF cardinality(added) > 0 THEN
    INSERT INTO activity_notes (at, env, counts)
      SELECT clock_timestamp(), a::int, jsonb_build_object('reactions', count(*)) FROM unnest(added) a GROUP BY 2;
  END IF;
END $$;

-- Removes the reactions of an erased user in a conversation, to at most p_most messages. Returns to how many there were.
CREATE OR REPLACE FUNCTION erase_reactions(p_env int, p_conv bigint, p_usr bigint, p_most int) RETURNS int LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  r message_reactions;
  seqs bigint[] := ARRAY(SELECT DISTINCT x.message FROM reactions x WHERE x.conv = p_conv AND x.usr = p_usr AND x.env = p_env ORDER BY 1 LIMIT p_most);
  place bigint;
  gone text[];
BEGIN
  FOREACH place IN ARRAY seqs LOOP
    SELECT x.* INTO r FROM message_reactions x WHERE x.conv = p_conv AND x.message = place AND x.env = p_env FOR NO KEY UPDATE;
    WITH removed AS (
      DELETE FROM reactions x WHERE x.conv = p_conv AND x.usr = p_usr AND x.message = place AND x.env = p_env RETURNING x.emoji
    ) SELECT coalesce(array_agg(d.emoji), '{}') INTO gone FROM removed d;
    UPDATE message_reactions x SET counts = less_reactions(p_env, p_conv, place, r.counts::jsonb, p_usr, gone)::text,
        total = x.total - cardinality(gone), revision = x.revision + 1,
        -- Counts of votes that name nobody are those of an anonymous poll.
        changes = more_changes(coalesce(r.changes, '[]')::jsonb, p_usr, ARRAY(SELECT g FROM unnest(gone) g WHERE NOT EXISTS (
          SELECT 1 FROM jsonb_array_elements(r.counts::jsonb) e WHERE e ->> 0 = g AND ${isVote('g')} AND e -> 2 = '[]')), NULL)::text, waiting = true,
        due_at = CASE WHEN x.waiting THEN x.due_at ELSE greatest(x.due_at, clock_timestamp()) END
      WHERE x.conv = p_conv AND x.message = place AND x.env = p_env AND cardinality(gone) > 0;
  END LOOP;
  RETURN cardinality(seqs);
END $$;
`;
