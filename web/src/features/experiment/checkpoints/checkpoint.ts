import type { Artifact } from '@/api/types'

export interface Checkpoint {
  round: number
  files: Artifact[]
}

/** Every checkpoint with its files by name, the newest first. */
export function checkpoints(artifacts: Artifact[]): Checkpoint[] {
  const files = artifacts.filter((artifact) => artifact.kind === 'checkpoint')
  const rounds = [...new Set(files.map((file) => file.round))].sort((a, b) => b - a)
  return rounds.map((round) => ({
    round,
    files: files.filter((file) => file.round === round).sort((a, b) => a.name.localeCompare(b.name)),
  }))
}

export function exportCommand(id: string): string {
  return `ferret experiment export ${id} checkpoint`
}

/** Loads the folder that {@link exportCommand} writes. */
export const LOAD_SNIPPET = `from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("checkpoint")
tokenizer = AutoTokenizer.from_pretrained("checkpoint")`

/** The round that the server marks as best, or else the newest. `models` begin with the newest. */
export function firstChoice(models: Checkpoint[]): number | undefined {
  return (models.find(({ files }) => isBest(files)) ?? models[0])?.round
}

/** The name of a round's model in the list. */
export function modelName(model: Checkpoint, models: Checkpoint[]): string {
  if (model.round === 0) return 'Base model'
  const marks = [isBest(model.files) && 'best', model === models[0] && 'newest'].filter(Boolean)
  return marks.length > 0 ? `Round ${model.round} (${marks.join(', ')})` : `Round ${model.round}`
}

export function isBest(files: Artifact[]): boolean {
  return files.some((file) => file.best)
}
