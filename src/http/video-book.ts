import type { KeptVideo, VideoStore } from '../ports/videos'
import type { NodeDialect } from '../wire/exchange'
import { isObject, type Json } from '../wire/json/values'
import type { VideoAtNode } from '../wire/video-calls'
import { isVideoOver } from '../wire/video-states'

/**
 * Videos that are remembered; beyond these the oldest is forgotten, though its node may have it still. Of one that is
 * being made its client could not even give it up then, so those go last.
 */
const REMEMBERED_VIDEOS = 1_000

/** A video that was begun here. */
export interface Video extends Omit<KeptVideo, 'at'> {
  readonly at: VideoAtNode
  /** Gives the work up, as long as there is any. */
  readonly stop?: (() => void) | undefined
}

/** Which node holds which video. */
export interface VideoBook {
  /** Adds it, or what became of it. */
  keep(video: Video): void
  get(id: string): Video | undefined
  forget(id: string): void
  /** The latest first. */
  list(): readonly Video[]
}

/** The id of the request that began a video, and ours of the video. */
export const requestOf = (id: string): string => id.replace(/^video_/, 'req_')
export const videoOf = (request: string): string => request.replace(/^req_/, 'video_')

/** Nothing more becomes of it. */
export const isOver = ({ state, fault }: Pick<Video, 'state' | 'fault'>): boolean =>
  fault !== undefined || isVideoOver(state)

/** It was begun before the process was: it may still be made, but no request follows it. */
export const isOrphan = (video: Video): boolean => video.stop === undefined && !isOver(video)

const ORPHAN =
  'The router was restarted while this video was being made: it holds no slot any more, and its node is asked how it stands.'

/** As clients see it: OpenAI's object under our id. */
export const shown = (video: Video): Json => ({
  ...video.state,
  ...(video.fault && { status: 'failed', error: video.fault }),
  id: video.id,
  ...(isOrphan(video) && { fleet: { node: video.node, message: ORPHAN } }),
})

/** As it is stored. The node's own words about a failure may quote the prompt, so they end with the process. */
const kept = ({ stop: _, ...video }: Video): KeptVideo => {
  if (!isObject(video.state.error)) return video
  const message = `${video.node} failed to make it; the record of ${requestOf(video.id)} says why.`
  return { ...video, state: { ...video.state, error: { code: 'failed', message } } }
}

const known = ({ at, ...video }: KeptVideo): Video => ({ ...video, at: { ...at, dialect: at.dialect as NodeDialect } })

export const createVideoBook = (store: VideoStore, limit = REMEMBERED_VIDEOS): VideoBook => {
  const videos = new Map<string, Video>()

  const forget = (id: string): void => {
    if (videos.delete(id)) store.forget(id)
  }

  const makeRoom = (latest: string): void => {
    if (videos.size <= limit) return
    const others = [...videos.values()].filter(({ id }) => id !== latest)
    const oldest = others.find(({ stop }) => stop === undefined) ?? others[0]
    if (oldest !== undefined) forget(oldest.id)
  }

  for (const video of store.load()) {
    videos.set(video.id, known(video))
    makeRoom(video.id)
  }

  return {
    keep(video) {
      videos.set(video.id, video)
      store.save(kept(video))
      makeRoom(video.id)
    },
    get: (id) => videos.get(id),
    forget,
    list: () => [...videos.values()].reverse(),
  }
}
