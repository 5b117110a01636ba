import type { Checkpoint } from '@/features/experiment/checkpoints/checkpoint'

/** The round that the server calls the best; the newest where it calls none so. `models` begin with the newest. */
export function firstChoice(models: Checkpoint[]): number | undefined {
  return (models.find(isBest) ?? models[0])?.round
}

/** What a round's model is called in a list of them. */
export function modelName(model: Checkpoint, models: Checkpoint[]): string {
  if (model.round === 0) return 'Base model'
  const marks = [isBest(model) && 'best', model === models[0] && 'newest'].filter(Boolean)
  return marks.length > 0 ? `Round ${model.round} (${marks.join(', ')})` : `Round ${model.round}`
}

function isBest({ files }: Checkpoint): boolean {
  return files.some((file) => file.best)
}
