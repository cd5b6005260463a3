/** The package has no types of its own. */
declare module 'cluster-key-slot' {
  /** The slot of a key in Redis Cluster, computed from its hash tag if it has one. */
  export default function calculateSlot(key: string): number;
}
