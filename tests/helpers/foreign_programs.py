"""Run exported rules in their own language and return the predictions, None where there is none.

Rows are a list of dicts; None and NaN are missing values.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import openpyxl


def predictions_of(values: Any) -> list:
    """Return Python values, None instead of NaN."""
    return [None if value is None or value != value else value for value in values]


def _run(command: list[str], folder: Path, **options: Any) -> str:
    result = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=600, **options
    )
    assert result.returncode == 0, result.stderr[-3000:] or result.stdout[-3000:]
    return result.stdout


# --- JavaScript -----------------------------------------------------------------------------------

_NODE_PROGRAM = """
const rows = [%s];
const result = [];
for (const path of %s) {
  const { predict } = require(path);
  result.push(rows.map((row) => {
    try {
      const value = predict(row);
      return Number.isNaN(value) ? null : typeof value === "number" ? [String(value)] : value;
    } catch (error) {
      if (error.message !== "No rule holds for this row.") throw error;
      return null;
    }
  }));
}
console.log(JSON.stringify(result));
"""


def javascript_value(value: Any) -> str:
    """Write a value of a row as JavaScript."""
    if isinstance(value, str) or value is None:
        return json.dumps(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}n" if abs(value) >= 2**53 else str(value)
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}Infinity"


def run_javascript(sources: list[str], rows: list[dict], folder: Path) -> list[list]:
    """Predict all rows with each function `predict`."""
    paths = [f"./rules_{i}.js" for i in range(len(sources))]
    for path, source in zip(paths, sources, strict=True):
        (folder / path).write_text(source, encoding="utf-8")
    listed = (
        "{" + ", ".join(f"[{json.dumps(k)}]: {javascript_value(v)}" for k, v in row.items()) + "}"
        for row in rows
    )
    program = _NODE_PROGRAM % (",\n".join(listed), json.dumps(paths))
    (folder / "main.js").write_text(program, encoding="utf-8")
    printed = json.loads(_run([shutil.which("node"), "main.js"], folder))
    return [
        [float(v[0].replace("Infinity", "inf")) if isinstance(v, list) else v for v in values]
        for values in printed
    ]


# --- Java -----------------------------------------------------------------------------------------

_JAVA_PROGRAM = """
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class Main {
    static String text(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return new String(bytes, StandardCharsets.UTF_16BE);
    }

    static Object value(String field) {
        String rest = field.substring(1);
        switch (field.charAt(0)) {
            case 's': return text(rest);
            case 'd': return Double.valueOf(rest);
            case 'i': return Long.valueOf(rest);
            case 'D': return new java.math.BigDecimal(rest);
            case 'b': return Boolean.valueOf(rest);
            default: return null;
        }
    }

    interface Predictor { Object predict(Map<String, ?> row); }

    static void print(PrintStream out, Predictor predictor, List<Map<String, Object>> rows) {
        for (Map<String, Object> row : rows) {
            Object result;
            try {
                result = predictor.predict(row);
            } catch (IllegalArgumentException error) {
                if (!error.getMessage().equals("No rule holds for this row.")) {
                    throw error;
                }
                result = null;
            }
            if (result instanceof String) {
                StringBuilder hex = new StringBuilder("s");
                for (byte b : ((String) result).getBytes(StandardCharsets.UTF_16BE)) {
                    hex.append(String.format("%02x", b));
                }
                result = hex;
            } else if (result != null) {
                result = result.getClass().getSimpleName().substring(0, 1) + result;
            }
            out.println(result);
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> lines = Files.readAllLines(Paths.get("rows.txt"));
        String[] names = lines.get(0).split("\\t", -1);
        List<Map<String, Object>> rows = new ArrayList<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] fields = line.split("\\t", -1);
            Map<String, Object> row = new HashMap<>();
            for (int j = 0; j < names.length; j++) {
                row.put(text(names[j].substring(1)), value(fields[j]));
            }
            rows.add(row);
        }
        PrintStream out = new PrintStream(
            new BufferedOutputStream(new FileOutputStream("predictions.txt")));
%s
        out.close();
    }
}
"""


def _java_field(value: Any) -> str:
    if value is None or value != value:
        return "n"
    if isinstance(value, str):
        return f"s{value.encode('utf-16-be', 'surrogatepass').hex()}"
    if isinstance(value, bool):
        return f"b{str(value).lower()}"
    if isinstance(value, Decimal):
        return f"D{value}"
    return f"i{value}" if isinstance(value, int) else f"d{value!r}".replace("inf", "Infinity")


def _java_result(line: str) -> Any:
    if line == "null" or line == "DNaN":
        return None
    kind, rest = line[0], line[1:]
    if kind == "s":
        return bytes.fromhex(rest).decode("utf-16-be", "surrogatepass")
    if kind == "B":
        return rest == "true"
    return int(rest) if kind == "L" else float(rest.replace("Infinity", "inf"))


def run_java(sources: list[str], rows: list[dict], folder: Path) -> list[list]:
    """Predict all rows with the classes Rules0, Rules1, ..."""
    for i, source in enumerate(sources):
        (folder / f"Rules{i}.java").write_text(source, encoding="ascii")
    calls = [f"        print(out, Rules{i}::predict, rows);" for i in range(len(sources))]
    return _run_java_program("\n".join(calls), len(sources), rows, folder, ".")


def _run_java_program(
    calls: str, n_results: int, rows: list[dict], folder: Path, class_path: str
) -> list[list]:
    program = _JAVA_PROGRAM.replace("%s", calls)
    (folder / "Main.java").write_text(program, encoding="ascii")
    names = list(rows[0])
    lines = ["\t".join(map(_java_field, names))]
    lines += ["\t".join(_java_field(row[name]) for name in names) for row in rows]
    (folder / "rows.txt").write_text("\n".join(lines), encoding="ascii")
    options = ["-nowarn", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    paths = ["-cp", os.pathsep.join([".", class_path])]
    _run([shutil.which("javac"), *options, *paths, "Main.java"], folder)
    _run([shutil.which("java"), "-XX:+UseSerialGC", *paths, "Main"], folder)
    printed = (folder / "predictions.txt").read_text(encoding="ascii").splitlines()
    results = list(map(_java_result, printed))
    return [results[i * len(rows) : (i + 1) * len(rows)] for i in range(n_results)]


# --- ONNX -----------------------------------------------------------------------------------------


def run_onnx(models: list[bytes], X: Any, missing: str = "<missing>") -> list[list]:
    """Predict all rows of a data frame with ONNX Runtime."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    results = []
    for model in models:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        feeds = {}
        for field in session.get_inputs():
            column = X[[field.name]]
            if field.type == "tensor(string)":
                feeds[field.name] = column.fillna(missing).to_numpy(dtype=object)
            else:
                feeds[field.name] = column.astype(object).fillna(np.nan).to_numpy(dtype=float)
        (prediction,) = session.run(["prediction"], feeds)
        results.append(predictions_of(prediction.tolist()))
    return results


# --- PMML -----------------------------------------------------------------------------------------

_PMML_PROGRAM = """\
        for (int i = 0; i < %d; i++) {
            org.jpmml.evaluator.Evaluator evaluator =
                new org.jpmml.evaluator.LoadingModelEvaluatorBuilder()
                    .load(new File("rules_" + i + ".pmml")).build().verify();
            String target = evaluator.getTargetFields().get(0).getName();
            print(out, row -> {
                Map<String, Object> fields = new HashMap<>();
                for (org.jpmml.evaluator.InputField field : evaluator.getInputFields()) {
                    fields.put(field.getName(), field.prepare(row.get(field.getName())));
                }
                Object value = evaluator.evaluate(fields).get(target);
                value = org.jpmml.evaluator.EvaluatorUtil.decode(value);
                return value instanceof Integer ? Long.valueOf((Integer) value) : value;
            }, rows);
        }"""


def pmml_jars() -> str:
    """Return the class path of JPMML, which a Python package contains."""
    import jpmml_evaluator

    folder = Path(jpmml_evaluator.__file__).parent / "dependencies"
    return os.pathsep.join(map(str, sorted(folder.glob("*.jar"))))


def run_pmml(documents: list[str], rows: list[dict], folder: Path) -> list[list]:
    """Predict all rows with the evaluator of JPMML."""
    for i, document in enumerate(documents):
        (folder / f"rules_{i}.pmml").write_text(document, encoding="utf-8")
    return _run_java_program(
        _PMML_PROGRAM % len(documents), len(documents), rows, folder, pmml_jars()
    )


# --- DMN and spreadsheets -------------------------------------------------------------------------

_FEEL_PROGRAM = """
const { unaryTest, evaluate } = require("feelin");
const tasks = JSON.parse(require("fs").readFileSync("tasks.json", "utf-8"));
const value = (result) => result !== null && typeof result === "object" && "value" in result
  ? result.value : result;
const result = tasks.map(({ inputs, rules, rows }) => rows.map((row) => {
  const values = inputs.map((text) => value(evaluate(text, row)));
  const rule = rules.find(({ cells }) => cells.every((cell, j) => cell === "-"
    || value(unaryTest(cell, { ...row, "?": values[j] })) === true));
  return rule === undefined ? null : value(evaluate(rule.output, row));
}));
console.log(JSON.stringify(result));
"""


def run_dmn(documents: list[str], tables: list[list[dict]], folder: Path) -> list[list]:
    """Predict the rows of each table with a FEEL interpreter; the first row of a table decides."""
    tasks = []
    for document, rows in zip(documents, tables, strict=True):
        space = "{https://www.omg.org/spec/DMN/20191111/MODEL/}"
        root = ET.fromstring(document)
        names = {d.get("label"): d.get("name") for d in root.iter(f"{space}inputData")}
        table = root.find(f".//{space}decisionTable")
        assert table.get("hitPolicy") == "FIRST"
        inputs = [e.findtext(f".//{space}text") for e in table.findall(f"{space}input")]
        rules = [
            {
                "cells": [e.findtext(f"{space}text") for e in rule.findall(f"{space}inputEntry")],
                "output": rule.findtext(f"{space}outputEntry/{space}text"),
            }
            for rule in table.findall(f"{space}rule")
        ]
        listed = [{names[k]: v for k, v in row.items() if k in names} for row in rows]
        tasks.append({"inputs": inputs, "rules": rules, "rows": listed})
    (folder / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    (folder / "main.js").write_text(_FEEL_PROGRAM, encoding="utf-8")
    return json.loads(_run([shutil.which("node"), "main.js"], folder), parse_int=float)


_SHEET_PROGRAM = """
const { HyperFormula } = require("hyperformula");
const tasks = JSON.parse(require("fs").readFileSync("tasks.json", "utf-8"));
const result = tasks.map(({ sheets, column, sheet, n }) => {
  const book = HyperFormula.buildFromSheets(sheets, { licenseKey: "gpl-v3" });
  return Array.from({ length: n }, (_, i) => {
    const value = book.getCellValue({ sheet: book.getSheetId(sheet), col: column, row: i + 1 });
    if (value !== null && typeof value === "object") {
      if (value.value !== "#N/A") throw new Error(JSON.stringify(value));
      return null;
    }
    return value;
  });
});
console.log(JSON.stringify(result));
"""


def run_workbooks(contents: list[bytes], tables: list[list[dict]], folder: Path) -> list[list]:
    """Type the rows into the sheets `Rows` and compute them with HyperFormula."""
    tasks = []
    for content, rows in zip(contents, tables, strict=True):
        book = openpyxl.load_workbook(io.BytesIO(content))
        sheet = book["Rows"]
        names = [cell.value for cell in sheet[1]]
        for i, row in enumerate(rows):
            for j, name in enumerate(names[:-2]):
                sheet.cell(i + 2, j + 1).value = row[name]
        sheets = {s.title: [[c.value for c in cells] for cells in s.iter_rows()] for s in book}
        tasks.append({"sheets": sheets, "sheet": "Rows", "column": len(names) - 2, "n": len(rows)})
    return _run_sheets(tasks, folder)


def run_formulas(formulas: list[tuple], tables: list[list[dict]], folder: Path) -> list[list]:
    """Compute a formula per row on a sheet of all features."""
    tasks = []
    for (write, names), rows in zip(formulas, tables, strict=True):
        cells = [[row[name] for name in names] + [write(i + 2)] for i, row in enumerate(rows)]
        sheets = {"Sheet": [[*names, "prediction"], *cells]}
        tasks.append({"sheets": sheets, "sheet": "Sheet", "column": len(names), "n": len(rows)})
    return _run_sheets(tasks, folder)


def _run_sheets(tasks: list[dict], folder: Path) -> list[list]:
    (folder / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    (folder / "main.js").write_text(_SHEET_PROGRAM, encoding="utf-8")
    return json.loads(_run([shutil.which("node"), "main.js"], folder), parse_int=float)


def has_node_package(name: str) -> bool:
    """Return whether Node.js finds a package."""
    node = shutil.which("node")
    if node is None:
        return False
    command = [node, "-e", f"require({json.dumps(name)})"]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
