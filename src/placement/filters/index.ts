import { breakerOpen } from './breaker-open'
import { capability } from './capability'
import { contextWindow } from './context-window'
import { failedBefore } from './failed-before'
import type { Filter } from './filter'
import { laneDown, laneMissing } from './lane'
import { lastHotCopy } from './last-hot-copy'
import { memoryFit } from './memory-fit'
import { notInventoried } from './not-inventoried'
import { notListed } from './not-listed'
import { otherKind } from './other-kind'
import { offline } from './offline'
import { paused } from './paused'
import { pinnedElsewhere } from './pinned-elsewhere'
import { pressureCritical } from './pressure'
import { queueFull } from './queue-full'
import { role } from './role'
import { unreachable } from './unreachable'

/** Stage 1, in this order: the first reason that applies is the one that is told. */
export const filters: readonly Filter[] = [
  pinnedElsewhere,
  notListed,
  role,
  laneMissing,
  capability,
  otherKind,
  failedBefore,
  notInventoried,
  offline,
  unreachable,
  breakerOpen,
  paused,
  laneDown,
  pressureCritical,
  contextWindow,
  memoryFit,
  lastHotCopy,
  queueFull,
]
