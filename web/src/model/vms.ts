// Disks of VMs that QEMU serves itself: what is known of their load.
import type { VmDisk } from "../api/wire.ts";

/** What they do together; nothing if QEMU tells of none of them. */
export function doneByQemu(disks: VmDisk[]): { iops: number; bytes: number } | null {
  const known = disks.flatMap((disk) => (disk.disk || !disk.now ? [] : [disk.now]));
  if (known.length === 0) return null;
  const sum = (of: (one: (typeof known)[number]) => number) => known.reduce((total, one) => total + of(one), 0);
  return { iops: sum((one) => one.iops), bytes: sum((one) => one.bytes_per_second) };
}
