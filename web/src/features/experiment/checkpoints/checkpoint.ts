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
