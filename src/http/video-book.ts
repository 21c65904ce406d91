import type { Json } from '../wire/json/values'
import type { VideoAtNode } from '../wire/video-calls'

/** Videos that are remembered; beyond these the oldest is forgotten, though its node may have it still. */
const REMEMBERED_VIDEOS = 1_000

/** A video that was begun here. Its id is ours: two nodes may give the same one. */
export interface Video {
  readonly id: string
  readonly node: string
  readonly at: VideoAtNode
  /** Whose it is, by the name of the key. */
  readonly key: string | undefined
  /** OpenAI's object as the node last told it. */
  readonly state: Json
  /** Gives the work up, as long as there is any. */
  readonly stop?: (() => void) | undefined
}

/** Which node holds which video. Lives in memory: a restart forgets it. */
export interface VideoBook {
  /** Adds it, or what became of it. */
  keep(video: Video): void
  get(id: string): Video | undefined
  forget(id: string): void
  /** The latest first. */
  list(): readonly Video[]
}

export const createVideoBook = (limit = REMEMBERED_VIDEOS): VideoBook => {
  const videos = new Map<string, Video>()
  return {
    keep(video) {
      videos.set(video.id, video)
      const oldest = videos.size > limit ? videos.keys().next().value : undefined
      if (oldest !== undefined) videos.delete(oldest)
    },
    get: (id) => videos.get(id),
    forget: (id) => void videos.delete(id),
    list: () => [...videos.values()].reverse(),
  }
}
