/** A cold page as whoever has the database at hand would ask for it. */
export const coldQuery =
  'SELECT * FROM parley_messages WHERE env = $1 AND conversation_id = $2 AND seq < $3 AND NOT hard ORDER BY seq DESC LIMIT 50';
