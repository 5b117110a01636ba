import type { Checkpoint } from '@/features/experiment/checkpoints/checkpoint'

/** The round that the server marks as best, or else the newest. `models` begin with the newest. */
export function firstChoice(models: Checkpoint[]): number | undefined {
  return (models.find(isBest) ?? models[0])?.round
}

/** The name of a round's model in the list. */
export function modelName(model: Checkpoint, models: Checkpoint[]): string {
  if (model.round === 0) return 'Base model'
  const marks = [isBest(model) && 'best', model === models[0] && 'newest'].filter(Boolean)
  return marks.length > 0 ? `Round ${model.round} (${marks.join(', ')})` : `Round ${model.round}`
}

function isBest({ files }: Checkpoint): boolean {
  return files.some((file) => file.best)
}
