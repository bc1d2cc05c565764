// The types of the API under the names that the page uses. `types.ts` is made from the
// daemon's OpenAPI document by `npm run types`.
import type { components } from "./types.ts";

type Schemas = components["schemas"];

export type Advice = Schemas["Advice"];
export type Advised = Schemas["Advised"];
export type Aim = Schemas["Aim"];
export type Amounts = Schemas["Amounts"];
export type AskGuard = Schemas["AskGuard"];
export type Bucket = Schemas["Bucket"];
export type Class = Schemas["Class"];
export type Datastore = Schemas["Datastore"];
export type Device = Schemas["Device"];
export type Disk = Schemas["Disk"];
export type DiskStats = Schemas["DiskStats"];
export type DrsAdvice = Schemas["DrsAdvice"];
export type DrsExplanation = Schemas["DrsExplanation"];
export type DrsMove = Schemas["DrsMove"];
export type DrsStatus = Schemas["DrsStatus"];
export type Explanation = Schemas["Explanation"];
export type Figures = Schemas["Figures"];
export type Goal = Schemas["Goal"];
export type Guard = Schemas["Guard"];
export type Guarding = Schemas["Guarding"];
export type Host = Schemas["Host"];
export type JudgedDatastore = Schemas["JudgedDatastore"];
export type Load = Schemas["Load"];
export type Migration = Schemas["Migration"];
export type Plan = Schemas["Plan"];
export type PlannedMove = Schemas["PlannedMove"];
export type Policy = Schemas["Policy"];
export type Predict = Schemas["Predict"];
export type Predicted = Schemas["Predicted"];
export type Prediction = Schemas["Prediction"];
export type Progress = Schemas["Progress"];
export type Recommendations = Schemas["Recommendations"];
export type Status = Schemas["Status"];
export type StorageDrs = Schemas["StorageDrs"];
export type Top = Schemas["Top"] & { matched?: number };
export type TopRow = Schemas["TopRow"];
export type Transfer = Schemas["Transfer"];
export type Vm = Schemas["Vm"];
export type VmDisk = Schemas["VmDisk"];
export type Warning = Schemas["Warning"];

/** Who is logged in, and where. */
export interface Session {
  role: "operator" | "viewer";
  user: string;
  daemon: string;
  expires_s?: number;
}

/** The first event of a stream. */
export interface Hello {
  now_ms: number;
  daemon: string;
  version: string;
  interval_ms: number;
}

/** Something that was done, or that happened. */
export interface Activity {
  seq: number;
  at_ms: number;
  who: string;
  /** `disk db`; nothing if it is the daemon itself. */
  about: string | null;
  text: string;
  command?: string | null;
  ok: boolean;
}

/** A row of figures of a timeline; nothing where nothing was asked. */
export type Column = (number | null)[];

/** What a disk, a class, a datastore or everything did. Arrays of equal length. */
export interface Columns {
  start_ms: number[];
  end_ms: number[];
  read_iops: Column;
  write_iops: Column;
  read_bytes_s: Column;
  write_bytes_s: Column;
  p50_us: Column;
  p99_us: Column;
  max_us: Column;
  queue_us: Column;
  service_us: Column;
  outstanding: Column;
}

/** The windows that were measured, joined where there are too many. */
export interface Timeline {
  of: string;
  from_ms: number;
  to_ms: number;
  now_ms: number;
  columns: Columns;
  finest_ms: number;
  joined: number;
}
