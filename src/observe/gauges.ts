import type { NodeView, Overview } from '../ports/fleet'
import type { Families } from './families'
import type { LabelLimit } from './label-limit'

const BYTES_PER_GB = 1e9

/** Sets the gauges that say how nodes stand now. Called at a scrape. */
export const setNodeGauges = (
  families: Families,
  { nodes, overview }: { readonly nodes: readonly NodeView[]; readonly overview: Overview },
  models: LabelLimit,
): void => {
  const { inFlight, slots, waiting, healthyNodes, nodeUp, nodeState, modelResident } = families
  for (const gauge of [inFlight, slots, waiting, nodeUp, nodeState, modelResident, families.nodeMemory]) gauge.clear()
  healthyNodes.set(overview.healthyNodes)
  for (const node of nodes) {
    nodeUp.set(node.health === 'online' ? 1 : 0, node.name, node.kind)
    nodeState.set(1, node.name, node.state)
    setMemory(families, node)
    // Several models may share the label `other`, so values are added up.
    for (const queue of node.queues) {
      const model = models.admit(queue.model)
      inFlight.add(queue.inFlight, node.name, model)
      slots.add(queue.slots, node.name, model)
      waiting.add(0, node.name, model)
    }
    for (const resident of node.resident) {
      if (resident.memoryGb === undefined) continue
      modelResident.add(resident.memoryGb * BYTES_PER_GB, node.name, models.admit(resident.name))
    }
  }
}

/** What is not known is not shown: a node without our software beside it tells little. */
const setMemory = ({ nodeMemory }: Families, { name, memoryGb, freeGb, claimedGb, resident }: NodeView): void => {
  const modelsGb = resident.reduce((sum, model) => sum + (model.memoryGb ?? 0), 0)
  nodeMemory.set(modelsGb * BYTES_PER_GB, name, 'model')
  if (claimedGb !== undefined) nodeMemory.set(claimedGb * BYTES_PER_GB, name, 'claimed')
  if (freeGb === undefined) return
  nodeMemory.set(freeGb * BYTES_PER_GB, name, 'free')
  if (memoryGb === undefined) return
  nodeMemory.set(Math.max(0, memoryGb - freeGb - modelsGb) * BYTES_PER_GB, name, 'other')
}
