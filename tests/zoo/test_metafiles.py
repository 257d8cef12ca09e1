"""Meta files and the tables made of them say what the configs say."""

from pathlib import Path

import pytest
from mmengine.fileio import load as load_file
from recipes import load

from inline_mm.complexity.count import count
from zoo import metafiles as zoo
from zoo import tables as zoo_tables

ROOT = Path(__file__).parents[2]
MODELS = zoo.read(ROOT)
QUICK = (
    'mask-rcnn_inline-swin-t_fpn_ms-crop-1x_coco',
    'fpn_pvt-t_8xb4-40k_ade20k-512x512',
    'inline-deit-tiny_8xb128_in1k',
)


def test_lists_every_config_once():
    paths = [
        path.relative_to(ROOT).as_posix()
        for folder in zoo.folders(ROOT)
        for path in folder.glob('*.py')
    ]
    assert len(paths) == len(MODELS) > 80
    assert {model['Config'] for model in MODELS.values()} == set(paths)


def test_index_lists_every_meta_file():
    index = load_file(ROOT / 'model-index.yml')['Import']
    found = (ROOT / 'configs').glob('*/*/metafile.yml')
    assert sorted(index) == sorted(
        path.relative_to(ROOT).as_posix() for path in found
    )


def test_collections_and_pages_exist():
    for folder in zoo.folders(ROOT):
        content = load_file(folder / 'metafile.yml')
        names = {entry['Name'] for entry in content['Collections']}
        assert names == {m['In Collection'] for m in content['Models']}
        for entry in content['Collections']:
            assert (ROOT / entry['README']).is_file()


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.heavy)
        for name in MODELS
    ],
)
def test_entry_is_what_the_config_says(name):
    known = MODELS[name]
    path = ROOT / known['Config']
    assert zoo.describe(ROOT, path, known, count, recount=True) == known


@pytest.mark.parametrize('page', zoo_tables.pages(ROOT), ids=lambda p: p.name)
def test_tables_are_up_to_date(page):
    """Otherwise: python -m zoo"""
    assert page.read_text(encoding='utf-8') == zoo_tables.pages(ROOT)[page]


def test_results_say_whose_weights_they_are_of():
    for model in MODELS.values():
        for result in model.get('Results', []):
            assert result['Source'] in zoo.SOURCES
            assert set(result['Metrics']) <= set(zoo_tables.NAMES.values())


def test_a_result_gets_into_its_column(tmp_path):
    """By hand into a meta file; kept by the next writing."""
    folder = tmp_path / 'configs/mmdet/inline_pvt'
    folder.mkdir(parents=True)
    name = 'mask-rcnn_inline-pvt-l_fpn_1x_coco'
    path = folder / f'{name}.py'
    load(name).dump(path)
    metrics = {'box AP': 45.0, 'mask AP': 41.25}
    result = dict(Source='trained here', Metrics=metrics)
    counted = dict(params=7, flops=9, input_shape=[8, 8])
    zoo.write(tmp_path, lambda cfg: counted, recount=False)
    content = load_file(folder / 'metafile.yml')
    content['Models'][0]['Results'] = [result]
    (folder / 'metafile.yml').write_text(zoo._yaml(content))
    zoo.write(tmp_path, lambda cfg: counted, recount=True)
    model = zoo.read(tmp_path)[name]
    assert model['Results'] == [result]
    *_, row = zoo_tables._table([model], 'mmdet', Path(), [])
    cells = [cell.strip() for cell in row.split('|')]
    assert cells[-4:-1] == ['45.4 / - [1]', '', '45.0 / 41.2']
