// The types of the API under the names that the page uses. `types.ts` is made from the
// daemon's OpenAPI document by `npm run types`.
import type { components } from "./types.ts";

type Schemas = components["schemas"];

export type Activities = Schemas["Activities"];
export type Activity = Schemas["Activity"];
export type Advice = Schemas["Advice"];
export type Advised = Schemas["Advised"];
export type Aim = Schemas["Aim"];
export type Amounts = Schemas["Amounts"];
export type AskGuard = Schemas["AskGuard"];
export type Bucket = Schemas["Bucket"];
export type Class = Schemas["Class"];
export type CreateClass = Schemas["CreateClass"];
export type CreatePolicy = Schemas["CreatePolicy"];
export type Datastore = Schemas["Datastore"];
export type DatastoreLoad = Schemas["DatastoreLoad"];
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
/** The first event of a stream. */
export type Hello = Schemas["Hello"];
/** A disk whose requests take longer than usual, or than is promised. */
export type BindingLimit = Schemas["BindingLimit"];
export type HurtDisk = Schemas["HurtDisk"];
export type Host = Schemas["Host"];
export type HostMemory = Schemas["HostMemory"];
export type JudgedDatastore = Schemas["JudgedDatastore"];
/** How one promise was kept in one hour. */
export type KeptHour = Schemas["KeptHour"];
export type KeptClass = Schemas["KeptClass"];
export type Load = Schemas["Load"];
/** What the kernel counts of memory. */
export type MemoryTop = Schemas["MemoryTop"];
export type Migration = Schemas["Migration"];
export type Plan = Schemas["Plan"];
export type PlannedMove = Schemas["PlannedMove"];
export type Policy = Schemas["Policy"];
export type Predict = Schemas["Predict"];
export type Predicted = Schemas["Predicted"];
export type Prediction = Schemas["Prediction"];
export type Progress = Schemas["Progress"];
export type Recommendations = Schemas["Recommendations"];
export type Session = Schemas["Session"];
export type Status = Schemas["Status"];
export type SpaceTrend = Schemas["SpaceTrend"];
export type StorageDrs = Schemas["StorageDrs"];
/** The last event of each second. */
export type Tick = Schemas["Tick"];
export type Top = Schemas["Top"];
export type TopRow = Schemas["TopRow"];
export type Transfer = Schemas["Transfer"];
/** What is usual for a disk, and one kind of its requests. */
export type UsualDisk = Schemas["UsualDisk"];
export type UsualTime = Schemas["UsualTime"];
export type Vm = Schemas["Vm"];
export type VmMemory = Schemas["VmMemory"];
export type VmDisk = Schemas["VmDisk"];
export type Warning = Schemas["Warning"];

/** A row of figures of a timeline; nothing where nothing was asked. */
export type Column = (number | null)[];

/** A timeline as the daemon sends it. */
export type RawTimeline = Schemas["Timeline"];
type Name = Exclude<keyof RawTimeline["columns"], "start_ms" | "end_ms" | "windows">;

/** The points of a timeline, with its pauses. Arrays of equal length. */
export type Columns = Record<Name, Column> & { start_ms: number[]; end_ms: number[] };

/** The windows that were measured, joined where there are too many. */
export interface Timeline extends Omit<RawTimeline, "columns"> {
  columns: Columns;
  /** How long a window is. */
  finest_ms: number;
  /** How many windows one point has at most. */
  joined: number;
}
