// Memory of the host and its VMs, for the story.
import { clock } from "./clock.mjs";

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const RESERVE = 774 * MIB;

function tiers() {
  const tier = (name, more) => ({ name, datastore: name, path: `/mnt/${name}/sterna-swap-${name}`, size: 32 * GIB, used: 0, priority: 1000, access_us: 110, bytes_per_s: 1330 * MIB, added: Math.floor(clock.now() / 1000) - 90_000, ...more });
  return [
    tier("flash", { datastore: "fast", used: 5.2 * GIB }),
    tier("sata", { datastore: null, path: "/dev/sdc1", size: 64 * GIB, used: 1.1 * GIB, priority: 800, access_us: 12_400, bytes_per_s: 148 * MIB }),
    tier("spare", { datastore: "nas", priority: null }),
  ];
}

function vms(world) {
  const now = Math.floor(clock.now() / 1000);
  const terms = { reservation: 0, limit: null, shares: 1000, balloon_max: null, wake_within_s: null };
  const balloon = (has) => ({ taken: has, has, max: 5 * GIB, guest_available: 3 * GIB, reports_free: false });
  const vm = (name, more) => ({ vm: name, state: "awake", asleep_since: null, size: 8 * GIB, resident: 6.4 * GIB, out: 0, out_on: [], wakes_known: 2, wake_hot_s: null, wake_all_s: null, terms, entitled: 6 * GIB, active: 0.4, balloon: null, work: null, last_wake: null, problem: null, ...more });
  const asleep = { state: "asleep", asleep_since: now - 5000, resident: 40 * MIB };
  const all = [
    vm("db-1", { balloon: balloon(0) }),
    vm("ghost", { size: null, resident: null, out: null, entitled: null, active: null, problem: "no such file: /run/ghost.qmp" }),
    vm("test-1", { ...asleep, out: 4.1 * GIB, wake_hot_s: 0.77, wake_all_s: 3.4 }),
    vm("test-2", { ...asleep, out: 2.2 * GIB, wake_hot_s: 6.2, wake_all_s: 18 }),
    vm("web-1", { resident: 3.1 * GIB, balloon: balloon(1.5 * GIB) }),
    vm("web-2", { state: "waking", resident: 2.4 * GIB, out: 900 * MIB, work: { kind: "wake", total: 2 * GIB, done: 1.1 * GIB, bytes_per_s: 640 * MIB, eta_s: 1.4, held: false } }),
  ];
  const changed = world.memory ?? {};
  return all.map((one) => ({ ...one, ...changed[one.vm] }));
}

/** All that is known, for which VMs are asked. */
export function host(world) {
  const all = { total: 64 * GIB, available: 20.3 * GIB, reserve: RESERVE, state: "high", settings: { automation: "partial", reserve: null }, short: 0 };
  return { ...all, tiers: world.empty ? [] : tiers(), vms: world.empty ? [] : vms(world) };
}

/** What the kernel counts. */
export function top(world) {
  const { tiers: allTiers, vms: allVms, settings: _, ...host_ } = host(world);
  const device = { flash: ["nvme0n1p2", 410.5, 22, 96], sata: ["sdc1", 38.2, 0, 11_800] };
  const tierTop = ({ name, size, used, priority, datastore }) => {
    const [its, reads, writes, us] = device[name] ?? [null, null, null, null];
    return { tier: name, size, used, in_use: priority !== null, device: its, whole_device: datastore === null, reads: its && 812_345, read_s: its && 512.5, writes: its && 90_210, reads_per_s: reads, writes_per_s: writes, read_us: us };
  };
  const vmTop = ({ vm, state, size, resident, out, balloon, entitled }) => ({ vm, state, size, resident, out, balloon: balloon?.has ?? null, entitled, faults: 41_200, faults_per_s: vm === "web-2" ? 420 : 0 });
  return { ...host_, at_ms: clock.now(), window_s: 10, faults_per_s: world.empty ? 0 : 448, tiers: allTiers.map(tierTop), vms: allVms.filter((vm) => !vm.problem).map(vmTop) };
}

/** A VM goes to sleep, or wakes. */
export function change(world, name, what, command) {
  const known = vms(world).find((one) => one.vm === name);
  if (!known) return null;
  const asleep = { state: "asleep", asleep_since: Math.floor(clock.now() / 1000), resident: 40 * MIB, out: known.resident, wake_hot_s: 1.2, wake_all_s: 4, work: null };
  const awake = { state: "awake", asleep_since: null, resident: 4 * GIB, out: 0, wake_hot_s: null, wake_all_s: null, work: null };
  world.memory = { ...world.memory, [name]: what === "sleep" ? asleep : awake };
  world.tell("dashboard", `vm ${name}`, `${what} vm`, command);
  return { body: vms(world).find((one) => one.vm === name) };
}
