/** The package has no types of its own. */
declare module 'cluster-key-slot' {
  /** The slot of a key in Redis Cluster; of its hash tag, where it has one. */
  export default function calculateSlot(key: string): number;
}
